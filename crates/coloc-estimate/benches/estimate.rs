//! How long an estimate takes.

use coloc_estimate::graph::text;
use coloc_estimate::learned::DEFAULT_ENVIRONMENT;
use coloc_estimate::run::RunConfig;
use coloc_estimate::summary::{self, SummaryOptions};
use coloc_estimate::{Estimator, ReplayEstimator, catalogue};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

fn estimates(criterion: &mut Criterion) {
    let estimator = ReplayEstimator::shipped(DEFAULT_ENVIRONMENT).expect("the default is shipped");
    let mlp = "input 1000\nrepeat 8\nlinear 1000\nbn\nrelu\ndropout\nend\nlinear 100\n";
    let transformer = "tokens 256\nembedding 30000 512\nposition\ndef layer\nlinear 1536\n\
        attention 8\nlinear 512\nx = dropout\nadd < in x\ny = ln\nlinear 2048\nrelu\ndropout\nlinear 512\n\
        z = dropout\nadd < y z\nln\nend\nrepeat 4\nlayer\nend\ngap\nlinear 100\n";
    let deep = "input 3x64x64\nconv 64 k3 p1\ndef block\nconv 64 k3 p1 nobias\nbn\nrelu!\n\
        conv 64 k3 p1 nobias\nx = bn\nadd! < x in\nrelu!\nend\nrepeat 71\nblock\nend\ngap\nlinear 10\n";
    for (name, source) in
        [("mlp", mlp), ("transformer, 4 layers", transformer), ("cnn, 500 layers", deep)]
    {
        let graph = text::parse(source).expect("the benchmark's graphs are valid");
        let run = RunConfig::new(64);
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| estimator.estimate(black_box(&graph), black_box(&run)));
        });
    }
    for (name, task) in [
        ("resnet50", "resnet"),
        ("bert base, 12 layers", "BERT_base"),
        ("bert large, 24 layers", "BERT_large"),
        ("gpt-2 xl, 48 layers", "gpt2_xl"),
    ] {
        let task = catalogue::task(task).expect("the task is in the catalogue");
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| estimator.estimate(black_box(&task.graph), &task.run));
        });
    }
}

fn parsers(criterion: &mut Criterion) {
    let rows: String = (0..250)
        .map(|index| {
            format!("Conv2d-{index} [-1, 64, 32, 32] 36,864\nReLU-{index} [-1, 64, 32, 32] 0\n")
        })
        .collect();
    let table = format!("Layer (type) Output Shape Param #\n{rows}Total params: 9,216,000\n");
    let options = SummaryOptions::default();
    criterion.bench_function("parse 500 rows", |bencher| {
        bencher.iter(|| summary::parse(black_box(&table), &options));
    });
    let broken = table.replace("Conv2d-249 [", "Conv2d-249 ");
    criterion.bench_function("refuse 500 rows", |bencher| {
        bencher.iter(|| summary::parse(black_box(&broken), &options));
    });
}

criterion_group!(benches, estimates, parsers);
criterion_main!(benches);
