#!/usr/bin/env bash
# Takes one rule at a time out of the code and runs the model that protects it, which must fail. A rule that can go
# without a model noticing is not protected. With an argument, only the mutations whose name or file contains it. Works on a copy of the tracked files; the tree stays as it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$PWD
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
export LOOM_MAX_PREEMPTIONS="${LOOM_MAX_PREEMPTIONS:-2}"
export RUSTFLAGS="--cfg tidegate_loom"
target="${CARGO_TARGET_DIR:-$root/target}/loom-mutations"

only="${1:-}"
passed=0
failed=0

# mutate NAME FILE PERL-EXPRESSION MODEL...: the expression must change the file, and each model must fail.
mutate() {
    local name=$1 file=$2 expression=$3
    shift 3
    [[ "$name $file" == *"$only"* ]] || return 0
    rm -rf "$box/tree"
    mkdir "$box/tree"
    git ls-files -z | xargs -0 cp --parents -t "$box/tree"
    perl -0pi -e "$expression" "$box/tree/$file"
    if cmp -s "$file" "$box/tree/$file"; then
        echo "NOT APPLIED  $name"
        failed=$((failed + 1))
        return
    fi
    for model in "$@"; do
        local log="$box/log"
        if (cd "$box/tree" && CARGO_TARGET_DIR=$target timeout 300 cargo test --release -p tidegate-loom-tests -- --include-ignored --exact "$model" >"$log" 2>&1); then
            echo "SURVIVED     $name: $model"
            failed=$((failed + 1))
        elif grep -q "^test $model .*FAILED\|^    $model$" "$log"; then
            echo "caught       $name: $model"
            passed=$((passed + 1))
        else
            echo "NO VERDICT   $name: $model"
            tail -5 "$log"
            failed=$((failed + 1))
        fi
    done
}

mutate "the walk of a change passes pending slots over" src/table/slots/mod.rs \
    's/while is_pending\(word\) && !free\(slot, word\)/while false \&\& !free(slot, word)/' \
    a_new_key_beside_a_change
mutate "the walk of a change passes pending entries over" src/table/exact/walk.rs \
    's/if word\.load\(Ordering::Acquire\) == PENDING/if false \&\& word.load(Ordering::Acquire) == PENDING/' \
    a_new_exact_key_beside_a_change
mutate "who writes a word of an era that is over leaves it" src/table/adopting.rs \
    's/if now\.number\(\) == era\.number\(\)/if now.number() >= era.number()/' \
    an_order_beside_two_changes
mutate "a word is read by whatever tier asks" src/table/eras.rs \
    's/if self\.is_foreign\(word\) \{ self\.adopted\(word, ns\) \} else \{ self\.eras\.bare\(word\) \}/self.eras.bare(word)/' \
    two_checks_by_two_tiers a_new_key_by_two_tiers
mutate "a charge rolls a stranger's window away" src/table/mod.rs \
    's/if seen == next \|\| rule\.ranks_for_good\(\)/if true || rule.ranks_for_good()/' \
    check_of_another_phase_against_takeover
mutate "an order takes from a stranger, and does not put it back" src/table/adopting.rs \
    's/self\.put_back\(word, \(ns, key\), era, \(value, done\.next\)\);//' \
    refund_against_takeover reset_against_takeover
mutate "an order counts though the slot has changed hands" src/table/adopting.rs \
    's/if is_ours\(\) \{\s+let was_dry/if true {\n let was_dry/' \
    refund_against_takeover
mutate "an order is a plain store" src/table/adopting.rs \
    's/word\s*\.compare_exchange\(before, next, Ordering::AcqRel, Ordering::Acquire\)\s*\.is_err\(\)/{ word.store(next, Ordering::Relaxed); false }/' \
    charge_and_refund_beside_a_check
mutate "nobody is told that a dry key is not dry any more" src/table/hot.rs \
    's/self\.wettings\.fetch_add\(1, Ordering::Release\);//' \
    who_was_refused_learns_of_a_reset
mutate "the exchange of a word is a plain store" src/table/mod.rs \
    's/word\s*\.compare_exchange\(seen, next, Ordering::AcqRel, Ordering::Acquire\)\s*\.is_ok\(\)/{ word.store(next, Ordering::Relaxed); true }/' \
    window_roll bucket_near_empty
mutate "a sealed word is charged all the same" src/table/mod.rs \
    's/if seen & TABLE_BIT != 0 \{\s+return \(Attempt::Mark, seen\);\s+\}/let _ = (TABLE_BIT, Attempt::Mark);/' \
    an_evicted_window_does_not_begin_anew
mutate "an idle entry is sealed without an exchange" src/table/exact.rs \
    's/word\.compare_exchange\(value, SEALED, Ordering::Release, Ordering::Relaxed\)\.is_ok\(\)/{ let _ = value; word.store(SEALED, Ordering::Release); true }/' \
    one_check_against_evict one_check_against_retain
mutate "a key is forgotten without an exchange" src/table/exact/walk.rs \
    's/let value = entry\.word\.swap\(SEALED, Ordering::Release\);/let value = entry.word.load(Ordering::Relaxed); entry.word.store(SEALED, Ordering::Release);/' \
    one_check_against_forget two_forget_one_key
mutate "who forgets a key puts its place back, whoever removed it" src/table/exact.rs \
    's/if self\.map\.remove_sealed\(hash, place, guard\) \{/let _ = self.map.remove_sealed(hash, place, guard); if true {/' \
    two_forget_one_key forget_against_evict
mutate "a pending key is promoted though it was forgotten" src/table/exact.rs \
    's/let promoted = word\.compare_exchange\(PENDING, decided\.next, Ordering::AcqRel, Ordering::Acquire\);/let promoted = word.compare_exchange(word.load(Ordering::Relaxed), decided.next, Ordering::AcqRel, Ordering::Acquire);/' \
    a_new_key_against_forget
mutate "an entry is removed by key alone, sealed or not" loom-tests/src/map.rs \
    's/&& word\.load\(Ordering::Relaxed\) == SEALED/\&\& word.load(Ordering::Relaxed) != 1/' \
    two_checks_against_evict
mutate "a new key may begin before the last eviction" src/table/exact.rs \
    's/engine\.precise_ns\(\)\.max\(self\.evicted_ns\.0\.load\(Ordering::Relaxed\)\)/engine.precise_ns()/' \
    an_evicted_window_does_not_begin_anew_when_time_steps_back
mutate "a place that was not used is not put back" src/table/places.rs \
    's/self\.places\.put\(self\.place\);//' \
    two_threads_on_one_new_key
mutate "the step does not publish the lag on record" src/time/shared.rs \
    's/compare_exchange\(seen, next, Ordering::Release, Ordering::Relaxed\)/compare_exchange(seen, next, Ordering::Relaxed, Ordering::Relaxed)/' \
    a_stall_is_healed_once
mutate "the lag is not recorded" src/time/shared.rs \
    's/self\.lag_max_ns\.fetch_max\(now - \(seen >> STATE_BITS\), Ordering::Relaxed\);//' \
    a_reading_lags_by_what_is_recorded_and_never_leads
mutate "a check wakes a sleeper by itself" src/time/shared.rs \
    's/ASLEEP => STIRRED,/ASLEEP => RUNNING,/' \
    nobody_takes_the_time_of_a_sleeper
mutate "a stall is counted by everyone who meets it" src/time/shared.rs \
    's/if self\.advance\(seen, now, next_state\) && state == RUNNING/let _ = self.advance(seen, now, next_state); if state == RUNNING/' \
    a_stall_is_healed_once

mutate "who lets go of a tray publishes nothing" src/hold.rs \
    's/self\.0\.0\.store\(0, Ordering::Release\)/self.0.0.store(0, Ordering::Relaxed)/' \
    what_is_done_while_it_is_had_is_not_lost
mutate "who does not get a tray lets go of it" src/hold.rs \
    's/held\.is_ok\(\)\.then\(\|\| Held\(self\)\)/held.is_ok().then_some(Held(self))/' \
    what_is_done_while_it_is_had_is_not_lost

slots=src/table/slots
mutate "the fingerprint word is not read again after the exchange" $slots/mod.rs \
    's/slot\.fingerprint\.load\(Ordering::Acquire\) == before\n/{ let _ = (slot, before); true }\n/' \
    forced_eviction_with_equal_numbers
mutate "one scan instead of two" $slots/mod.rs \
    's/let again = request\.look\(\)\?;/let again = *seen;/' \
    a_stopped_claimer_publishes_while_others_settle
mutate "the generation does not advance" $slots/line.rs \
    's/fingerprint_word\.wrapping_add\(1\) & GENERATION/fingerprint_word \& GENERATION/' \
    a_freed_slot_goes_to_a_stranger
mutate "the generation is read before the slot is claimed" $slots/claim.rs \
    's/let last = slot\.fingerprint\.load\(Ordering::Acquire\);/let last = candidate.named;/' \
    a_freed_slot_goes_to_a_stranger
mutate "the lowest is promoted before the others are freed" $slots/mod.rs \
    's/if !pending\.all\(\|\(slot, mark\)\| free\(slot, mark\)\) \{\s+return None;\s+\}//' \
    a_stopped_claimer_goes_on
mutate "the first value is 0, and the charge comes later" $slots/mod.rs \
    's/compare_exchange\(mark, decided\.next,/compare_exchange(mark, 0,/; s/promoted\.is_ok\(\)\.then_some\(Charged \{ decided, ns \}\)/let _ = promoted; None/' \
    an_evicted_window_does_not_begin_anew_in_the_slots
mutate "a new key may begin before the last takeover" $slots/mod.rs \
    's/engine\.precise_ns\(\)\.max\(self\.evicted_ns\.0\.load\(Ordering::Relaxed\)\)/engine.precise_ns()/' \
    an_evicted_window_does_not_begin_anew_in_the_slots
mutate "a word is copied without another look at its name" $slots/copies.rs \
    's/if is_still\(slot, before\)/let _ = is_still; if true/' \
    copy_against_takeover
mutate "a slot is claimed without an exchange" $slots/claim.rs \
    's/if slot\.word\.compare_exchange\(word, CLAIMED, Ordering::AcqRel, Ordering::Acquire\)\.is_err\(\) \{\s+return false;\s+\}/slot.word.store(CLAIMED, Ordering::Release);/' \
    two_claims_of_one_victim
mutate "a key may take its own slot for a stranger's" $slots/claim.rs \
    's/if owner\(named\) == request\.fingerprint( && word != CLAIMED)? \{/if false {/g' \
    nobody_waits_for_a_stopped_claimer
mutate "a freed slot forgets what its claimer took over" $slots/mod.rs \
    's/slot\.word\.store\(freed\(mark\)/slot.word.store(freed(mark) \& !(u64::MAX >> 3)/' \
    nothing_is_forgiven_where_debts_are_inherited
mutate "a lease is spent after its time" src/table/hot.rs \
    's/\(self\.is_live\(life_ns, ns\) & is_enough\)/((life_ns > 0) \& is_enough)/' \
    a_lease_ends_with_its_time
mutate "a lease is spent though its charge was lost" src/table/mod.rs \
    's/\(Attempt::Lost, _\) => Err\(Missed::Lost\),/(Attempt::Lost, next) => Ok(Charged { decided: Decided { outcome: Outcome::Pass, next }, ns }),/' \
    two_threads_lease_from_one_word
mutate "a lease is spent and never charged" src/table/mod.rs \
    's/self\.decide\(own\.next, ns, key, tokens\)/own/' \
    two_threads_lease_from_one_word
mutate "a lease may be charged to a stranger" $slots/once.rs \
    's/Some\(\(slot\.word, move \|\| is_still\(slot, before\)\)\)/let _ = before; Some((slot.word, || true))/' \
    a_lease_is_charged_to_no_stranger
mutate "a key that was dry is dry for good" src/table/hot.rs \
    's/moment < self\.dry_until\.get\(\)/moment > 0 \&\& self.dry_until.get() > 0/' \
    a_dry_key_is_dry_until_its_token_is_back
mutate "no fences" src/sync.rs \
    's/pub\(crate\) use loom::sync::atomic::fence;/pub(crate) fn fence(_: Ordering) {}/' \
    a_stopped_claimer_goes_on

printf 'mutations: %d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
