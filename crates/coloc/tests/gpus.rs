//! `coloc gpus` and `coloc doctor` on emulated GPUs, and where there are none.

mod support;

use serde_json::Value;
use std::io::Write;
use support::{Run, Workspace, coloc};

/// Runs a shell script on an emulated fleet, with `coloc` on its path as `$COLOC`.
fn on_fleet(spec: &str, flags: &[&str], script: &str) -> Run {
    let dir = Workspace::with(&[]);
    let binary = env!("CARGO_BIN_EXE_coloc");
    // It ends with its trainers: `wait` for them would take as long as they train.
    let script = format!("COLOC={binary}; trap 'kill $(jobs -p) 2>/dev/null' EXIT\n{script}");
    let command = ["--", "sh", "-c", &script];
    coloc(dir.path(), &[&["emu", "run", "--fleet", spec], flags, &command[..]].concat())
}

/// Waits until as many processes as asked for hold at least this much memory.
const UNTIL_SETTLED: &str = r#"
until_settled() {
  for _ in $(seq 200); do
    [ "$($COLOC gpus --json | grep -c '"pid"')" -ge "$1" ] && return 0
    sleep 0.05
  done
  echo "the trainers did not come" >&2; exit 9
}
"#;

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.ok()).expect("JSON")
}

#[test]
fn the_answer_has_the_fields_of_the_contract() {
    let answer = json(&on_fleet("2xA100-40GB", &[], "$COLOC gpus --json"));
    assert_eq!((answer["schema"].as_u64(), answer["emulated"].as_bool()), (Some(1), Some(true)));
    let gpus = answer["gpus"].as_array().expect("a list");
    assert_eq!(gpus.len(), 2);
    let numbers = [
        "index",
        "memory_total_bytes",
        "memory_used_bytes",
        "utilization",
        "power_w",
        "power_limit_w",
        "energy_j",
        "temperature_c",
    ];
    for field in numbers {
        assert!(gpus[1][field].is_number(), "{field} in {}", gpus[1]);
    }
    for field in ["uuid", "name", "model", "pci_bus_id", "source"] {
        assert!(gpus[1][field].is_string(), "{field} in {}", gpus[1]);
    }
    assert!(gpus[1]["smact"].is_null(), "nothing sees SM activity in a moment");
    assert_eq!(gpus[1]["mig"]["mode"], "disabled");
    assert_eq!(gpus[1]["memory_total_bytes"].as_u64(), Some(40_960 << 20));
}

#[test]
fn processes_are_listed_with_user_memory_and_owner() {
    let script = format!(
        "{UNTIL_SETTLED}
         CUDA_VISIBLE_DEVICES=1 $COLOC emu train --memory 3G --seconds 600 >/dev/null 2>&1 &
         until_settled 1
         $COLOC gpus --json"
    );
    let answer = json(&on_fleet("2xA100-40GB", &[], &script));
    assert_eq!(answer["gpus"][0]["processes"], Value::Array(Vec::new()));
    let process = &answer["gpus"][1]["processes"][0];
    assert!(process["pid"].as_u64().is_some_and(|pid| pid > 1), "{process}");
    assert!(process["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 100 << 20), "{process}");
    assert!(process["user"].is_string(), "{process}");
    assert_eq!((&process["task"], &process["foreign"]), (&Value::Null, &Value::Bool(true)));
}

#[test]
fn people_get_a_table_that_says_it_is_emulated() {
    let run = on_fleet("1xA100-40GB,1xH100-80GB", &["--freeze"], "$COLOC gpus");
    insta::assert_snapshot!(run.ok());
}

#[test]
fn small_kernels_utilize_a_gpu_fully_and_leave_its_sms_idle() {
    let script = format!(
        "{UNTIL_SETTLED}
         $COLOC emu train --mix tiny-kernels --seconds 600 >/dev/null 2>&1 &
         until_settled 1
         for _ in $(seq 40); do
           $COLOC gpus --activity --json > seen.json
           grep -q '\"utilization\": 1.0' seen.json && break
           sleep 0.2
         done
         cat seen.json"
    );
    let answer = json(&on_fleet("1xH100-80GB", &[], &script));
    let gpu = &answer["gpus"][0];
    assert_eq!(gpu["utilization"].as_f64(), Some(1.0), "{gpu}");
    assert!(gpu["smact"].as_f64().is_some_and(|smact| smact < 0.15), "{gpu}");
    // Whichever of the two answered first.
    assert!(gpu["source"] == "gpm" || gpu["source"] == "dcgm_dmon", "{gpu}");
}

#[test]
fn without_a_driver_the_answer_is_clear_and_the_exit_code_1() {
    let dir = Workspace::with(&[]);
    let run = coloc(dir.path(), &["gpus", "--json"]);
    if run.output.status.success() {
        let words = "SKIPPED: this machine has an NVIDIA driver";
        writeln!(std::io::stderr(), "{words}").expect("it is heard");
        return;
    }
    let told: Value = serde_json::from_str(&run.fails_with(1)).expect("JSON");
    assert_eq!(told["error"]["code"], "driver");
    let complaint = coloc(dir.path(), &["gpus"]).fails_with(1);
    assert!(complaint.starts_with("coloc: no NVIDIA driver: libnvidia-ml.so.1"), "{complaint}");
    assert!(complaint.contains("coloc emu run"), "it says what to do: {complaint}");
    // The doctor's answer is that there is none: that is an answer, not a failure.
    let doctor = json(&coloc(dir.path(), &["doctor", "--json"]));
    assert_eq!(doctor["findings"][0]["health"], "missing");
}

#[test]
fn a_doctor_that_finds_something_broken_says_so_with_its_exit_code() {
    // In place of the emulated one.
    let break_dcgmi = "D=$(dirname $(command -v dcgmi)); rm $D/dcgmi; \
                       printf '#!/bin/sh\necho no host engine >&2; exit 1' > $D/dcgmi; chmod +x $D/dcgmi; ";
    let doctor = "COLOC_DCGM_EXPORTER= $COLOC doctor --json";
    let broken = on_fleet("1xA100-40GB", &[], &format!("{break_dcgmi} {doctor}"));
    assert_eq!(broken.output.status.code(), Some(3), "{}", broken.stderr());
    let answer: Value = serde_json::from_slice(&broken.output.stdout).expect("JSON");
    assert_eq!(answer["findings"][1]["health"], "broken");
    assert!(answer["findings"][1]["what"].to_string().contains("no host engine"));
    assert!(broken.stderr().contains("SM activity BROKEN"), "{}", broken.stderr());
    let well = on_fleet("1xA100-40GB", &[], "COLOC_DCGM_EXPORTER= $COLOC gpus --json");
    assert_eq!(json(&well)["gpus"].as_array().map(Vec::len), Some(1));
}

#[test]
fn the_doctor_says_what_is_enforced_and_how_to_get_further() {
    let answer = json(&on_fleet("2xA100-40GB", &[], "$COLOC doctor --json --exporter 127.0.0.1:1"));
    assert_eq!((answer["schema"].as_u64(), answer["emulated"].as_bool()), (Some(1), Some(true)));
    let findings = answer["findings"].as_array().expect("a list");
    let abouts: Vec<&str> = findings.iter().filter_map(|f| f["about"].as_str()).collect();
    assert_eq!(
        abouts,
        ["driver", "SM activity", "processes", "memory limits", "MPS", "MIG", "task processes"]
    );
    for finding in findings {
        let better = finding["health"] == "ok" || finding["next"].is_string();
        assert!(better, "what could be better says how: {finding}");
    }
    assert!(answer["enforcement"]["mps"].as_bool().is_some_and(|mps| mps));
}
