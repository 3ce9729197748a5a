//! tidegate
