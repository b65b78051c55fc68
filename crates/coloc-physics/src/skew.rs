//! How unevenly a model's parameters are spread over its tensors: the largest as a part of all. What is
//! skewed suffers from a network between its GPUs.

/// From the tensor lists published with Tiresias.
const KNOWN: [(&str, f64); 9] = [
    ("vgg11", 0.774),
    ("vgg16", 0.744),
    ("vgg19", 0.717),
    ("alexnet", 0.611),
    ("inception3", 0.138),
    ("resnet50", 0.112),
    ("resnet101", 0.075),
    ("resnet152", 0.060),
    ("inception4", 0.044),
];

/// The skew of a model, if its name begins with one that is known, however it is spelt.
pub fn skew(name: &str) -> Option<f64> {
    let plain: String = name.chars().filter(|c| c.is_alphanumeric() || c.is_whitespace()).collect();
    let plain = plain.to_lowercase();
    let first = plain.split_whitespace().next()?;
    KNOWN.iter().find(|(model, _)| *model == first).map(|&(_, skew)| skew)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_spelt_in_several_ways() {
        assert_eq!(skew("vgg16"), Some(0.744));
        assert_eq!(skew("ResNet-50 (batch size 64) x4"), Some(0.112));
        assert_eq!(skew("ResNet-18"), None);
        assert_eq!((skew(""), skew("vgg161")), (None, None));
    }
}
