//! The vendor's tools, by their names.

use super::fleet::{COLOC, Fleet, Trainer, wait_until};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// The text between the first pair of these tags.
fn within<'a>(xml: &'a str, tag: &str) -> &'a str {
    let inside = xml
        .split_once(&format!("<{tag}>"))
        .and_then(|(_, rest)| rest.split_once(&format!("</{tag}>")));
    inside.unwrap_or_else(|| panic!("no {tag} in {xml}")).0
}

/// Every tag that is opened is closed, in order.
fn assert_well_formed(xml: &str) {
    let mut open = Vec::new();
    for tag in xml.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(tag, _)| tag) {
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{xml}");
        } else if !tag.starts_with(['?', '!']) {
            open.extend(tag.split_whitespace().next());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn nvidia_smi_tells_everything_as_text_and_as_xml() {
    let fleet = Fleet::start("2xA100-40GB", &["--freeze"]);
    let _trainer = fleet.train(&["--profile", "vgg"]);
    wait_until("the plateau", || fleet.used_mib(0) == 6684);
    fleet.ask("nvidia-smi", &["-i", "1", "-mig", "1"]);
    fleet.ask("nvidia-smi", &["mig", "-i", "1", "-cgi", "9,19", "-C"]);
    let log = fleet.ask("nvidia-smi", &["-q", "-x"]);
    assert_well_formed(&log);
    let gpus: Vec<&str> = log.split("<gpu id=").skip(1).collect();
    assert_eq!((gpus.len(), within(&log, "attached_gpus")), (2, "2"));
    let query = |field: &str| {
        let query = format!("--query-gpu={field}");
        fleet.ask("nvidia-smi", &["-i", "0", &query, "--format=csv,noheader"]).trim().to_owned()
    };
    let power = within(gpus[0], "gpu_power_readings");
    for (found, field) in [
        (within(within(gpus[0], "fb_memory_usage"), "used"), "memory.used"),
        (within(gpus[0], "gpu_util"), "utilization.gpu"),
        (within(power, "power_draw"), "power.draw"),
        (within(power, "current_power_limit"), "power.limit"),
        (within(gpus[0], "uuid"), "uuid"),
        (within(gpus[0], "sm_clock"), "clocks.sm"),
    ] {
        assert_eq!(found, query(field), "{field}");
    }
    assert_eq!(within(gpus[0], "gpu_temp"), format!("{} C", query("temperature.gpu")));
    let process = within(gpus[0], "process_info");
    assert_eq!((within(process, "type"), within(process, "used_memory")), ("C", "6684 MiB"));
    assert_eq!(
        (within(gpus[0], "mig_devices"), within(gpus[1], "current_mig")),
        ("None", "Enabled")
    );
    let devices: Vec<&str> = gpus[1].split("<mig_device>").skip(1).collect();
    let totals: Vec<&str> = devices.iter().map(|device| within(device, "total")).collect();
    assert_eq!(totals, ["19968 MiB", "4864 MiB"]);
    assert_eq!(within(gpus[1], "gpu_util"), "N/A");
    let text = fleet.ask("nvidia-smi", &["-q"]);
    for line in [
        "    Product Name                          : NVIDIA A100-SXM4-40GB",
        "        Used                              : 6684 MiB",
        "        GPU Current Temp                  : ",
        "            Used GPU Memory               : 6684 MiB",
        "    MIG Device\n        Index                             : 0",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    let file = fleet.path().join("log.xml");
    fleet.ask("nvidia-smi", &["-q", "-x", "-f", file.to_str().expect("text")]);
    assert_well_formed(&std::fs::read_to_string(&file).expect("it was written"));
}

#[test]
fn the_exporter_speaks_prometheus() {
    use std::io::{Read, Write};
    let fleet = Fleet::start("2xA100-40GB", &["--freeze"]);
    let _trainer = fleet.train(&["--profile", "vgg"]);
    wait_until("the plateau", || fleet.used_mib(0) == 6684);
    let mut command = fleet.command(COLOC, &["emu", "exporter", "--listen", "127.0.0.1:0"]);
    let mut exporter = Trainer(command.stdout(Stdio::piped()).spawn().expect("the binary"));
    let mut line = String::new();
    let stdout = exporter.0.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("its address");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let get = |path: &str| {
        let mut stream = std::net::TcpStream::connect(address.expect("an address")).expect("open");
        // In pieces, some of which may come after the answer: that must not cost the answer.
        for piece in ["GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"] {
            stream.write_all(piece.as_bytes()).expect("open");
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    let metrics = get("/metrics");
    let value = |name: &str, gpu: &str| {
        let start = format!("{name}{{gpu=\"{gpu}\"");
        let line = metrics.lines().find(|line| line.starts_with(&start)).unwrap_or_default();
        line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok())
    };
    assert_eq!(value("DCGM_FI_PROF_SM_ACTIVE", "0"), Some(0.73), "{metrics}");
    assert_eq!(value("DCGM_FI_PROF_SM_ACTIVE", "1"), Some(0.0));
    assert_eq!(value("DCGM_FI_DEV_FB_USED", "0"), Some(6684.0));
    assert!(get("/nothing").starts_with("HTTP/1.1 404"));
    assert!(get("/metrics HTTP/1.1\r\n\r\ngarbage").starts_with("HTTP/1.1"));
}

#[test]
fn a_lost_gpu_does_not_silence_the_others() {
    let fleet = Fleet::start("3xA100-40GB", &[]);
    fleet.ask(COLOC, &["emu", "fault", "lost", "1"]);
    let list = fleet.ask("nvidia-smi", &["-L"]);
    assert!(list.contains("GPU 0: NVIDIA") && list.contains("GPU 2: NVIDIA"), "{list}");
    assert!(list.contains("GPU is lost"), "{list}");
    let rows = fleet.ask("nvidia-smi", &["--query-gpu=index,memory.total", "--format=csv"]);
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows[0], "index, memory.total [MiB]");
    assert_eq!(rows[1..], ["0, 40960 MiB", "[GPU is lost], [GPU is lost]", "2, 40960 MiB"]);
    let looks = fleet.ask("dcgmi", &["dmon", "-e", "1002", "-c", "1"]);
    assert!(looks.contains("GPU 1     N/A") && looks.contains("GPU 2     0.000"), "{looks}");
    let monitored = fleet.ask("nvidia-smi", &["dmon", "-c", "1"]);
    assert!(monitored.lines().any(|line| line.trim_start().starts_with("2 ")), "{monitored}");
}

#[test]
fn nobody_looks_again_without_a_pause() {
    let fleet = Fleet::start("1xA100-40GB", &[]);
    for words in [&["-l", "0"][..], &["-lms", "0"], &["pmon", "-d", "0"], &["dmon", "-d", "0"]] {
        assert!(!fleet.run("nvidia-smi", words).status.success(), "{words:?}");
    }
    assert!(!fleet.run("dcgmi", &["dmon", "-e", "1002", "-d", "0"]).status.success());
}
