//! Mutated inputs: every reader must answer or refuse, never panic, never hang.
//!
//! `COLOC_FUZZ_SECONDS` sets the time for each reader; a short run is part of every test run.

use coloc_estimate::dataset::{self, Kind};
use coloc_estimate::graph::text;
use coloc_estimate::hf::{self, Options};
use coloc_estimate::summary::{self, SummaryOptions};
use std::path::Path;
use std::time::{Duration, Instant};

/// A small generator of its own, so that a failing input can be made again from its number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }
}

const PIECES: [&str; 16] = [
    "[",
    "]",
    "-1",
    "0",
    "99999999999999999999",
    "4294967295",
    "(",
    ")",
    ": ",
    "\u{2502}",
    "│    └─",
    ",",
    "\n",
    "Conv2d-1 [-1, 0, 0, 0] 0",
    "repeat 9999",
    "$",
];

fn mutate(seed: &str, dice: &mut Dice) -> String {
    let mut characters: Vec<char> = seed.chars().collect();
    for _ in 0..1 + dice.roll(12) {
        let at = dice.roll(characters.len());
        match dice.roll(5) {
            0 => characters.truncate(at),
            1 if at < characters.len() => {
                characters.remove(at);
            }
            2 => {
                let piece: Vec<char> = PIECES[dice.roll(PIECES.len())].chars().collect();
                characters.splice(at..at, piece);
            }
            3 if !characters.is_empty() => {
                let from = dice.roll(characters.len());
                let part: Vec<char> = characters[from..].iter().take(200).copied().collect();
                characters.splice(at..at, part);
            }
            _ if at < characters.len() => {
                characters[at] = char::from(32 + dice.roll(95) as u8);
            }
            _ => {}
        }
        characters.truncate(20_000);
    }
    characters.into_iter().collect()
}

fn fuzz(reader: &str, seeds: &[&str], read: impl Fn(&str)) {
    let seconds = std::env::var("COLOC_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs_f64(seconds.unwrap_or(2.0));
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut slowest = Duration::ZERO;
    let mut inputs = 0u64;
    while Instant::now() < end {
        let text = mutate(seeds[dice.roll(seeds.len())], &mut dice);
        let start = Instant::now();
        read(&text);
        slowest = slowest.max(start.elapsed());
        inputs += 1;
    }
    println!("{reader}: {inputs} inputs, the slowest took {slowest:?}");
    // A hang, not a busy machine, takes this long.
    assert!(slowest < Duration::from_secs(60), "an input took {slowest:?}");
}

const TABLE: &str = "----\n        Layer (type)               Output Shape         Param #\n====\n\
    Conv2d-1         [32, 64, 112, 112]           9,408\n\
    BatchNorm2d-2         [32, 64, 112, 112]             128\n\
    ReLU-3         [32, 64, 112, 112]               0\n\
    AdaptiveAvgPool2d-4 [32, 64, 1, 1] 0\n\
    Sigmoid-5 [32, 64, 1, 1] 0\n\
    SqueezeExcitation-6 [32, 64, 112, 112] 0\n\
    Bottleneck-7 [32, 64, 112, 112] 0\n\
    InceptionA-8 [32, 64, 112, 112] 0\n\
    Linear-9 [32, 1000] 65,000\n\
    ====\nTotal params: 74,536\nInput size (MB): 18.38\n";

const TREE: &str = "Net(\n  (embedding): Embedding(100, 64), 6,400 params\n  (layers): ModuleList(\n\
    (0): BertLayer(\n (query): Linear(in_features=64, out_features=64, bias=True), 4,160 params\n )\n )\n)\n\
    Total params: 10,560\n";

const TORCHINFO: &str = "====\n\
    Layer (type:depth-idx)   Kernel Shape   Input Shape          Output Shape         Param #\n====\n\
    Unet                     --             [8, 3, 64, 64]       [8, 21, 64, 64]      --\n\
    ├─Conv2d: 1-1            [3, 3]         [8, 3, 64, 64]       [8, 21, 64, 64]      588\n\
    ├─BasicBlock: 1-2        --             [8, 21, 64, 64]      [8, 32, 32, 32]      9,000\n\
    ====\nTotal params: 9,588\n";

const BERT_TREE: &str = "BertForMaskedLM(\n  (words): Embedding(100, 64)\n  (wpe): Embedding(512, 64)\n\
    \x20   (0): BertLayer(\n      (self): BertSelfAttention(\n\
    \x20       (query): Linear(in_features=64, out_features=64, bias=True)\n      )\n\
    \x20     (dense): Linear(in_features=64, out_features=256, bias=True)\n\
    \x20     (dense): Linear(in_features=256, out_features=64, bias=True)\n    )\n\
    \x20 (classifier): Linear(in_features=64, out_features=2, bias=True)\n), 59,000 params\n";

const USUAL_COLUMNS: &str = "Layer (type:depth-idx)   Output Shape         Param #\n====\n\
    Net                      [8, 16, 64, 64]      --\n\
    ├─Conv2d: 1-1            [8, 16, 64, 64]      448\n\
    ├─BasicBlock: 1-2        [8, 16, 64, 64]      --\n\
    │    └─Conv2d: 2-1       [8, 16, 64, 64]      2,320\n\
    │    └─ReLU: 2-2         [8, 16, 64, 64]      --\n\
    ====\nTotal params: 2,768\nInput size (MB): 0.39\n";

const ODD_TABLE: &str = "Layer (type)  Output Shape  Param #\nConv3d-1 [-1, 8, 4, 16, 16] 656\n\
    LSTM-2 [[-1, 8, 64], [-1, 2, 64]] 33,280\nTotal params: 33,936\n";

fn read_summary(text: &str) {
    if let Ok(summary) = summary::parse(text, &SummaryOptions::default()) {
        assert!(!summary.graph.nodes().is_empty());
    }
}

#[test]
fn torchsummary_tables_survive() {
    fuzz("torchsummary", &[TABLE, ODD_TABLE], read_summary);
}

#[test]
fn module_trees_survive() {
    fuzz("module tree", &[TREE, BERT_TREE], read_summary);
}

#[test]
fn torchinfo_trees_survive() {
    fuzz("torchinfo", &[TORCHINFO, USUAL_COLUMNS], read_summary);
}

#[test]
fn graphs_survive() {
    let seed = "input 3x32x32\ndef b out\nx = conv $out k3 p1\nadd < x x\nend\nrepeat 3\nb 8\nend\ngap\nlinear 5\n";
    fuzz("graph text", &[seed], |text| {
        let _ = text::parse(text);
    });
}

#[test]
fn configs_survive() {
    let seed = r#"{"model_type":"gpt2","n_embd":64,"n_layer":2,"n_head":2,"vocab_size":100,"n_positions":64}"#;
    let headed = r#"{"model_type":"electra","hidden_size":64,"embedding_size":32,"num_hidden_layers":2,
        "intermediate_size":128,"num_attention_heads":2,"vocab_size":100,"max_position_embeddings":64,
        "architectures":["ElectraForTokenClassification"],"id2label":{"0":"a"},"attn_implementation":"sdpa"}"#;
    fuzz("config", &[seed, headed], |text| {
        let _ = hf::parse(text, &Options::default());
    });
}

#[test]
fn measured_rows_survive() {
    let seed = "Filename,Depth,Activations-Params,Activation Function,Total Activations,Total Parameters,\
        Batch Size,Max GPU Memory (MiB),Avg SMACT,Avg SMOCC\n\
        input:64_output:8_depth:2_arch:pyramid_batch:32.out,3,\"[('linear', 32, 2080), ('ReLU', 32, 0), \
        ('linear', 8, 264)]\",ReLU,72,2344,32,1451,0.1,0.05\n";
    let read = |text: &str, kind| dataset::read_from(text.as_bytes(), Path::new("rows.csv"), kind);
    assert_eq!(read(seed, Kind::Mlp).unwrap().len(), 1);
    fuzz("measured rows", &[seed], |text| {
        for kind in [Kind::Mlp, Kind::Cnn, Kind::Transformer] {
            let _ = read(text, kind);
        }
    });
}

#[test]
fn the_seeds_themselves_are_read() {
    for seed in [TABLE, ODD_TABLE, TREE, BERT_TREE, TORCHINFO, USUAL_COLUMNS] {
        summary::parse(seed, &SummaryOptions::default()).unwrap();
    }
}
