//! Kinds of GPU as people call them.

/// Whether a GPU of this model is of that kind: `A100-40GB` is an `a100`, an `A100-40GB` and an `a100_40gb`, and an
/// `NVIDIA RTX A6000` an `a6000` and an `rtx_a6000`; no A100 is an `a10`.
pub fn is_of_kind(model: &str, kind: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
    };
    let kind = plain(kind);
    let parts: Vec<String> = model.split(|c: char| !c.is_ascii_alphanumeric()).map(plain).collect();
    // A run of words, however they are joined.
    let run = |first: usize| {
        let joined = parts[first..].iter().scan(String::new(), |run, part| {
            run.push_str(part);
            Some(run == &kind)
        });
        joined.into_iter().any(|same| same)
    };
    !kind.is_empty() && (0..parts.len()).any(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_words_of_a_name() {
        for (model, kind) in [
            ("A100-40GB", "a100"),
            ("A100-40GB", "A100-40GB"),
            ("A100-40GB", "a100_40gb"),
            ("NVIDIA RTX A6000", "a6000"),
            ("NVIDIA RTX A6000", "rtx-a6000"),
            ("NVIDIA L40S", "l40s"),
        ] {
            assert!(is_of_kind(model, kind), "{model} {kind}");
        }
        for (model, kind) in [
            ("A100-40GB", "a10"),
            ("A100-40GB", "a100-80gb"),
            ("A100-40GB", ""),
            ("A100-40GB", "-"),
            ("", "a100"),
            ("V100-16GB", "100"),
            ("NVIDIA RTX A6000", "nvidia-a6000"),
        ] {
            assert!(!is_of_kind(model, kind), "{model} {kind}");
        }
    }
}
