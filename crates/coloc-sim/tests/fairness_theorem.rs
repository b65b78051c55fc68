//! The slides' theorem on interchangeable devices: no rule gives allocations that are Pareto efficient (PE)
//! and share incentives (SI: no user is worse off than with an equal part of everything) and that no user can
//! turn to his profit by lying about his speeds (SP), unless all speed-ups are equal.
//!
//! One GPU and one block of cores, two users. A gets `x` of the GPU; by PE the GPU goes first to the user that
//! it speeds up more, so the other has all cores. The counter-example: whatever such a rule answers to the
//! truth, A or B gains by a lie, because PE and SI leave it no choice afterwards.

/// A user's work a second on the whole GPU; on the cores it is 1.
type Speedup = f64;

/// The parts `x` of the GPU for A that are PE and SI, if A is sped up more than B: B has the rest of the
/// GPU and all cores.
fn pe_and_si(a: Speedup, b: Speedup) -> (f64, f64) {
    assert!(a > b);
    let equal = |speedup: Speedup| (speedup + 1.0) / 2.0;
    let least = equal(a) / a;
    let most = 1.0 - (equal(b) - 1.0) / b;
    (least, most)
}

fn of_a(x: f64, truly: Speedup) -> f64 {
    truly * x
}

fn of_b(x: f64, truly: Speedup) -> f64 {
    truly * (1.0 - x) + 1.0
}

const A: Speedup = 4.0;
const B: Speedup = 2.0;

#[test]
fn whatever_a_fair_and_efficient_rule_answers_somebody_gains_by_lying() {
    let (least, most) = pe_and_si(A, B);
    assert_eq!((least, most), (0.625, 0.75));
    // A says that the GPU helps it hardly more than B; B that it helps it nearly as much as A.
    let (modest_a, _) = pe_and_si(B + 0.01, B);
    let (_, bold_b) = pe_and_si(A, A - 0.01);
    for step in 0..=1000 {
        let x = least + (most - least) * f64::from(step) / 1000.0;
        // Whatever the rule makes of the lies, it is at least, or at most, this.
        let gain_of_a = of_a(modest_a, A) - of_a(x, A);
        let gain_of_b = of_b(bold_b, B) - of_b(x, B);
        assert!(gain_of_a > 0.0 || gain_of_b > 0.0, "at {x} neither gains");
    }
}

/// With equal speed-ups any split of equal value is efficient, and half of everything is one of them: what
/// is said does not matter.
#[test]
fn with_equal_speedups_there_is_nothing_to_gain() {
    for claim in [2.01, 3.0, 10.0, 100.0] {
        let (least, most) = pe_and_si(claim, claim - 1e-9);
        // All that PE and SI leave is the one split that is worth an equal part to both.
        assert!((most - least).abs() < 1e-6, "{claim}: {least} to {most}");
        let equal = (claim + 1.0) / 2.0;
        assert!((of_a(least, claim) - equal).abs() < 1e-6);
        assert!((of_b(least, claim) - equal).abs() < 1e-6);
    }
}
