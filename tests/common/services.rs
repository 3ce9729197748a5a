//! The published limits of the field.

/// Requests in 15 s and in 300 s of every service in the field's published table.
pub(crate) const SERVICES: [(&str, u64, u64); 20] = [
    ("stats-read", 100, 300),
    ("stats-write", 100, 300),
    ("user-posts", 100, 300),
    ("achievements", 100, 300),
    ("profile", 10, 30),
    ("people", 10, 30),
    ("privacy", 10, 30),
    ("clubs", 10, 30),
    ("multiplayer-session", 30, 300),
    ("session-search-read", 1, 20),
    ("session-search-write", 1, 20),
    ("presence-read", 10, 100),
    ("presence-write", 3, 30),
    ("leaderboards", 30, 100),
    ("smart-match", 10, 100),
    ("recent-players", 3, 50),
    ("invites", 7, 50),
    ("activity-write", 10, 100),
    ("activity-read", 20, 200),
    ("authentication", 15, 50),
];
