//! Whatever happens, in whatever order, under whatever policy.

mod testkit;

mod properties {
    mod arbitrary;
    mod exact;
    mod invariants;
}
