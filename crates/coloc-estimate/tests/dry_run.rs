//! Dry runs of real training scripts; they need PyTorch.
//!
//! `COLOC_TEST_PYTHON` names the interpreter, `python3` is the default.

use coloc_estimate::environment::Environment;
use coloc_estimate::faketensor::{self, FakeTensorError};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// An interpreter that has PyTorch, or a loud word that there is none.
fn python_with_torch(test: &str) -> Option<String> {
    let python = std::env::var("COLOC_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let imported = Command::new(&python).args(["-c", "import torch"]).output();
    if imported.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    // Past the test runner's capture, which would swallow it in a test that passes.
    let words = format!(
        "SKIPPED {test}: {python} cannot import torch; set COLOC_TEST_PYTHON to one that can"
    );
    writeln!(std::io::stderr(), "{words}").expect("it is heard");
    None
}

struct Script {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn script(text: &str) -> Script {
    let folder = tempfile::tempdir().expect("a folder for the script");
    let path = folder.path().join("train.py");
    std::fs::write(&path, text).expect("the folder is ours");
    Script { _folder: folder, path }
}

fn command(python: &str, script: &Script, arguments: &[&str]) -> Vec<String> {
    let path = script.path.to_str().expect("folders for tests have plain names");
    [python, path].iter().chain(arguments).map(ToString::to_string).collect()
}

/// As people write them: a loader, a device that is asked for, a loss in the log.
const TRAIN: &str = r#"
import sys
import torch
from torch import nn

batch = int(sys.argv[1])
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 10)).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
data = torch.utils.data.TensorDataset(torch.randn(8192, 1024), torch.randint(0, 10, (8192,)))
loader = torch.utils.data.DataLoader(data, batch_size=batch, shuffle=True, pin_memory=True)
for epoch in range(100):
    for inputs, labels in loader:
        inputs, labels = inputs.to(device, non_blocking=True), labels.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), labels)
        loss.backward()
        optimizer.step()
        print("loss", loss.item())
"#;

const WEIGHTS: u64 = 4 * (1024 * 4096 + 4096 + 4096 * 10 + 10);

#[test]
fn a_script_is_measured_without_a_gpu() {
    let Some(python) = python_with_torch("a_script_is_measured_without_a_gpu") else { return };
    let script = script(TRAIN);
    let small =
        faketensor::dry_run(&command(&python, &script, &["32"]), 3, &Environment::default())
            .unwrap();
    // Weights, gradients, two states and one temporary at the optimizer's step.
    let peak = small.peak.0 as f64 / WEIGHTS as f64;
    assert!((5.0..5.3).contains(&peak), "{peak} times the weights");
    assert!(small.bound > small.peak);
    assert_eq!(small.estimator, "faketensor");
    // With a large batch the activations are more than the optimizer's temporary.
    let large =
        faketensor::dry_run(&command(&python, &script, &["8192"]), 3, &Environment::default())
            .unwrap();
    assert!(large.peak > small.peak, "{} and {}", large.peak, small.peak);
}

#[test]
fn a_script_that_does_not_train_is_refused() {
    let Some(python) = python_with_torch("a_script_that_does_not_train_is_refused") else { return };
    let idle = script("import torch\nprint(torch.ones(3).sum())\n");
    let error =
        faketensor::dry_run(&command(&python, &idle, &[]), 3, &Environment::default()).unwrap_err();
    assert!(matches!(error, FakeTensorError::NothingTrained { steps: 0, .. }), "{error}");
    let broken = script("import torch\nraise ValueError('no data here')\n");
    let error = faketensor::dry_run(&command(&python, &broken, &[]), 3, &Environment::default())
        .unwrap_err();
    assert!(error.to_string().contains("no data here"), "{error}");
}
