//! MPS and MIG as their clients see them.

use super::fleet::{COLOC, Fleet, Trainer, text, wait_until};
use std::path::Path;
use std::process::Stdio;

#[test]
fn mps_limits_its_clients_and_takes_them_along() {
    let fleet = Fleet::start("1xA100-40GB", &["--time-scale", "100"]);
    assert_eq!(fleet.tell_mps("get_server_list"), "");
    fleet.ask("nvidia-cuda-mps-control", &["-d"]);
    assert_eq!(fleet.tell_mps("set_default_active_thread_percentage 25"), "25.0");
    fleet.tell_mps("set_default_device_pinned_mem_limit 0 4G");
    assert_eq!(fleet.tell_mps("get_default_device_pinned_mem_limit 0"), "4G");
    let client = fleet.train(&["--profile", "vgg", "--memory", "3G", "--seconds", "1000000"]);
    wait_until("the client", || fleet.used_mib(0) == 3 << 10);
    let process = fleet.show()["gpus"][0]["processes"][0].clone();
    assert_eq!(process["mps"], true);
    assert!(process["speed"].as_f64() < Some(0.6), "a quarter of the SMs: {process}");
    let (code, _, complaint) = fleet.train(&["--memory", "5G"]).end();
    assert_eq!(code, Some(1));
    assert!(complaint.contains("CUDA out of memory"), "{complaint}");
    let server = fleet.tell_mps("get_server_list");
    let clients = fleet.tell_mps(&format!("get_client_list {server}"));
    assert_eq!(clients, client.0.id().to_string());
    fleet.tell_mps(&format!("terminate_client {server} {clients}"));
    let (code, _, complaint) = client.end();
    assert_eq!(code, Some(1));
    assert!(complaint.contains("terminated by MPS"), "{complaint}");
    fleet.tell_mps("quit");
    wait_until("the daemon's end", || {
        fleet.tell_mps("get_server_list").is_empty()
            && !Path::new(&format!("/proc/{server}")).exists()
    });
}

#[test]
fn a_mig_device_is_used_by_its_uuid() {
    let fleet = Fleet::start("1xA100-40GB", &["--time-scale", "100"]);
    fleet.ask("nvidia-smi", &["-mig", "1"]);
    fleet.ask("nvidia-smi", &["mig", "-cgi", "9,9", "-C"]);
    let refused = fleet.run("nvidia-smi", &["mig", "-cgi", "19"]);
    assert_eq!(refused.status.code(), Some(23), "{}", text(&refused.stderr));
    let picture = fleet.show();
    let uuid = picture["gpus"][0]["mig_devices"][1]["uuid"].as_str().expect("a UUID").to_owned();
    let mut command =
        fleet.command(COLOC, &["emu", "train", "--profile", "vgg", "--seconds", "100000"]);
    command.env("CUDA_VISIBLE_DEVICES", &uuid).stdout(Stdio::null());
    let _trainer = Trainer(command.spawn().expect("the binary"));
    wait_until("the plateau", || {
        fleet.show()["gpus"][0]["mig_devices"][1]["memory_used_bytes"] == 6684u64 << 20
    });
    assert_eq!(fleet.show()["gpus"][0]["mig_devices"][0]["memory_used_bytes"], 0);
    let busy = fleet.run("nvidia-smi", &["mig", "-dci"]);
    assert_eq!(busy.status.code(), Some(19), "{}", text(&busy.stderr));
    assert_eq!(fleet.run("nvidia-smi", &["-mig", "0"]).status.code(), Some(19));
}
