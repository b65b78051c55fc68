//! What the replay must do whatever the measurements say.

use coloc_estimate::graph::text;
use coloc_estimate::hf::{self, Options};
use coloc_estimate::learned::DEFAULT_ENVIRONMENT;
use coloc_estimate::replay::{CopyRule, NoWorkspace, replay};
use coloc_estimate::run::{Optimizer, Precision, RunConfig, Sharding};
use coloc_estimate::{Estimator, ReplayEstimator, catalogue};
use coloc_model::Bytes;

const LLAMA: &str = r#"{"model_type":"llama","hidden_size":512,"num_hidden_layers":4,
    "intermediate_size":1376,"num_attention_heads":8,"vocab_size":8000}"#;

fn reserved(options: &Options, run: &RunConfig) -> u64 {
    let graph = hf::parse(LLAMA, options).expect("the config is valid");
    replay(&graph, run, &CopyRule::default()).reserved.0
}

#[test]
fn techniques_that_save_memory_do_so() {
    let plain = Options { tokens: 256, ..Options::default() };
    let run = RunConfig { optimizer: Optimizer::AdamW, ..RunConfig::new(8) };
    let all = reserved(&plain, &run);
    let saved = [
        ("checkpointing", reserved(&Options { checkpointing: true, ..plain }, &run)),
        ("LoRA", reserved(&Options { lora_rank: Some(8), ..plain }, &run)),
        ("16 bits", reserved(&plain, &RunConfig { precision: Precision::Half, ..run.clone() })),
        ("SGD", reserved(&plain, &RunConfig { optimizer: Optimizer::Sgd, ..run.clone() })),
        ("a smaller batch", reserved(&plain, &RunConfig::new(2))),
    ];
    for (what, bytes) in saved {
        assert!(bytes < all, "{what}: {bytes} is not below {all}");
    }
    let zero = |stage| {
        let sharding = Sharding { stage, gpus: 8 };
        reserved(&plain, &RunConfig { sharding, ..run.clone() })
    };
    assert!(zero(1) < zero(0) && zero(2) <= zero(1) && zero(3) <= zero(2));
}

#[test]
fn a_plan_that_does_not_fit_is_skipped() {
    let task = catalogue::task("vgg3").unwrap();
    let free = replay(&task.graph, &task.run, &CopyRule::default());
    let bare = replay(&task.graph, &task.run, &NoWorkspace);
    let limit = Bytes((free.reserved.0 + bare.reserved.0) / 2);
    let tight = RunConfig { limit: Some(limit), ..task.run.clone() };
    let squeezed = replay(&task.graph, &tight, &CopyRule::default());
    assert!(!squeezed.ran_out, "the second plan needs no workspace");
    assert!(squeezed.reserved <= limit);
    let hopeless = RunConfig { limit: Some(Bytes::from_mib(2000)), ..task.run };
    assert!(replay(&task.graph, &hopeless, &CopyRule::default()).ran_out);
}

#[test]
fn an_estimate_is_the_same_every_time_and_below_its_bound() {
    let estimator = ReplayEstimator::shipped(DEFAULT_ENVIRONMENT).unwrap();
    for name in catalogue::task_names() {
        let Some(task) = catalogue::task(name) else { continue };
        let first = estimator.estimate(&task.graph, &task.run);
        assert_eq!(first, estimator.estimate(&task.graph, &task.run), "{name}");
        assert!(first.peak <= first.bound, "{name}");
        let breakdown = first.breakdown.unwrap();
        let usage = breakdown.usage;
        let sum = usage.weights
            + usage.gradients
            + usage.optimizer
            + usage.activations
            + usage.workspace
            + usage.fragmentation
            + breakdown.context;
        assert_eq!(sum >> 20, first.peak.0 >> 20, "{name}: the parts make the whole");
    }
}

#[test]
fn the_catalogue_has_the_published_sizes() {
    for (model, parameters) in [
        ("vgg16", 138_357_544),
        ("resnet50", 25_557_032),
        ("mobilenet_v2", 3_504_872),
        ("efficientnet_b0", 5_288_548),
        ("inception_v3", 23_834_568),
        ("xception", 22_855_952),
        ("resnet18_cifar", 11_227_812),
        ("resnet34_cifar", 21_335_972),
        ("efficientnet_b0_cifar", 4_135_648),
        ("unet_resnet34", 24_439_269),
    ] {
        assert_eq!(catalogue::graph(model).unwrap().parameters(), parameters, "{model}");
    }
}

/// The result of a net that only overwrites its batch is the batch: it is freed once, when both are gone.
#[test]
fn a_net_without_a_result_of_its_own_settles() {
    let graph = text::parse("input 4096\nrelu!\n").unwrap();
    let trained = |epochs| {
        let run = RunConfig { epochs, ..RunConfig::new(1 << 10) };
        replay(&graph, &run, &CopyRule::default())
    };
    assert_eq!(trained(3), trained(9));
    assert!(trained(3).allocated.0 >= 4 * (16 << 20), "the batch, the last one and the loss");
}

#[test]
fn unknown_operations_widen_the_bound() {
    let estimator = ReplayEstimator::shipped(DEFAULT_ENVIRONMENT).unwrap();
    let known = text::parse("input 64\nlinear 4096\nrelu\nlinear 10\n").unwrap();
    let mut doubtful = known.clone();
    doubtful.flag(coloc_estimate::graph::FlagKind::UnknownOperation, "a layer of one's own");
    let run = RunConfig::new(512);
    let (sure, unsure) = (estimator.estimate(&known, &run), estimator.estimate(&doubtful, &run));
    assert_eq!(sure.peak, unsure.peak);
    assert!(unsure.bound > sure.bound);
}

/// What a pass needs of other GPUs' weights is 16 bits wide too, and nothing stays whole.
#[test]
fn zero_3_needs_less_in_16_bits_than_in_32() {
    let config = r#"{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"vocab_size":32000,
        "intermediate_size":11008,"num_attention_heads":32,"architectures":["LlamaForCausalLM"]}"#;
    let graph = hf::parse(config, &Options::default()).unwrap();
    let needs = |precision| {
        let sharding = Sharding { stage: 3, gpus: 64 };
        let run = RunConfig { precision, sharding, ..RunConfig::new(1) };
        replay(&graph, &run, &NoWorkspace).reserved.mib()
    };
    let [whole, mixed, half] = [Precision::Fp32, Precision::Mixed, Precision::Half].map(needs);
    assert!(mixed < 0.7 * whole, "{mixed} in 16 bits, {whole} in 32");
    assert_eq!(mixed, half);
}

/// An image of a gigapixel or more has more scores than can be counted; where they stream their number is not needed.
#[test]
fn scores_that_stream_need_not_be_counted() {
    let config = r#"{"model_type": "vit", "hidden_size": 32, "num_hidden_layers": 1, "intermediate_size": 128,
        "num_attention_heads": 2, "image_size": 3210000, "patch_size": 8, "num_labels": 10,
        "architectures": ["ViTForImageClassification"]}"#;
    let graph = hf::parse(config, &Options::default()).unwrap();
    let estimator = ReplayEstimator::shipped(DEFAULT_ENVIRONMENT).unwrap();
    let estimate = estimator.estimate(&graph, &RunConfig::new(1));
    assert!(estimate.bound >= estimate.peak && estimate.peak > Bytes::from_mib(1 << 20));
}
