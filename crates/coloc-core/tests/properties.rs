//! Whatever happens, in whatever order, under whatever policy.

mod testkit;

mod properties {
    mod arbitrary;
    mod contract;
    mod eligibility;
    mod exact;
    mod invariants;
}
