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
    // A tool that looks again and again keeps what was seen, and begins anew the next time.
    let query = ["--query-gpu=index", "--format=csv", "-lms", "20", "-f"];
    let words = [&query[..], &[file.to_str().expect("text")]].concat();
    let _watch = Trainer(fleet.command("nvidia-smi", &words).spawn().expect("a tool"));
    wait_until("three looks", || {
        let seen = std::fs::read_to_string(&file).unwrap_or_default();
        seen.starts_with("index\n0\n1\n0\n1\n0\n1\n")
    });
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
    // A client that says nothing keeps no other client waiting.
    let silent = std::net::TcpStream::connect(address.expect("an address")).expect("open");
    let began = std::time::Instant::now();
    assert!(get("/nothing").starts_with("HTTP/1.1 404"));
    assert!(began.elapsed().as_secs() < 4, "it waited for the silent one");
    drop(silent);
    // A GPU instance is one series, however it is divided.
    fleet.ask("nvidia-smi", &["-i", "1", "-mig", "1"]);
    fleet.ask("nvidia-smi", &["mig", "-i", "1", "-cgi", "9,9"]);
    fleet.ask("nvidia-smi", &["mig", "-i", "1", "-gi", "1", "-cci", "0,0,0"]);
    fleet.ask("nvidia-smi", &["mig", "-i", "1", "-gi", "2", "-cci"]);
    let metrics = get("/metrics");
    let series = metrics.lines().filter_map(|line| line.rsplit_once(' ')).map(|(labels, _)| labels);
    let mut series: Vec<&str> = series.filter(|labels| labels.ends_with('}')).collect();
    let all = series.len();
    series.sort_unstable();
    series.dedup();
    assert_eq!(series.len(), all, "no two are the same");
    assert_eq!(series.iter().filter(|one| one.contains("GPU_I_ID=\"1\"")).count(), all / 3);
    let rows = fleet.ask("dcgmi", &["dmon", "-e", "1002", "-c", "1", "-i", "1/1,1/2"]);
    assert!(rows.contains("GPU-I 8 ") && rows.contains("GPU-I 9 "), "{rows}");
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

#[test]
fn who_is_not_root_may_look_and_not_touch() {
    let fleet = Fleet::start("1xA100-40GB", &[]);
    let as_user = |words: &[&str]| {
        let output = fleet.command("nvidia-smi", words).env("COLOC_EMU_UID", "1000").output();
        let output = output.expect("the tool");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for words in [&["-mig", "1"][..], &["-pl", "300"], &["-pm", "1"], &["-c", "3"]] {
        let (code, complaint) = as_user(words);
        assert_eq!(code, Some(4), "{words:?}: {complaint}");
        assert!(complaint.contains("Insufficient Permissions"), "{words:?}: {complaint}");
    }
    assert_eq!(as_user(&["-q"]).0, Some(0));
    fleet.ask("nvidia-smi", &["-mig", "1"]);
    assert_eq!(as_user(&["mig", "-cgi", "9", "-C"]).0, Some(4));
    fleet.ask("nvidia-smi", &["mig", "-cgi", "9", "-C"]);
    // Instances keep the mode on, whichever user asks.
    let refused = fleet.run("nvidia-smi", &["-mig", "0"]);
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(19), "{complaint}");
    assert!(complaint.contains("Unable to disable MIG Mode") && complaint.contains("In use"));
    assert_eq!(fleet.ask("nvidia-smi", &["-L"]).lines().count(), 2, "they are still there");
    fleet.ask("nvidia-smi", &["mig", "-dci"]);
    fleet.ask("nvidia-smi", &["mig", "-dgi"]);
    fleet.ask("nvidia-smi", &["-mig", "0"]);
}

#[test]
fn without_a_driver_nvidia_smi_says_what_everybody_knows() {
    let fleet = Fleet::start("1xA100-40GB", &[]);
    fleet.ask(COLOC, &["emu", "fault", "unload"]);
    for words in [&[][..], &["-L"], &["pmon", "-c", "1"], &["mig", "-lgip"], &["-pm", "1"]] {
        let output = fleet.run("nvidia-smi", words);
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(9), "{words:?}: {complaint}");
        assert!(complaint.contains("couldn't communicate with the NVIDIA driver"), "{complaint}");
    }
    fleet.ask(COLOC, &["emu", "fault", "load"]);
    fleet.ask("nvidia-smi", &["-L"]);
}

#[test]
fn nvidia_smi_shows_the_columns_and_sections_that_are_asked_for() {
    let fleet = Fleet::start("2xA100-40GB", &["--freeze"]);
    let _trainer = fleet.train(&["--profile", "vgg"]);
    wait_until("the plateau", || fleet.used_mib(0) == 6684);
    let words = |text: &str, line: usize| -> Vec<String> {
        text.lines().nth(line).unwrap_or("").split_whitespace().map(str::to_owned).collect()
    };
    let table = fleet.ask("nvidia-smi", &["pmon", "-c", "1", "-s", "um"]);
    let head = [
        "#", "gpu", "pid", "type", "sm", "mem", "enc", "dec", "jpg", "ofa", "fb", "ccpm", "command",
    ];
    assert_eq!(words(&table, 0), head);
    let row = words(&table, 2);
    assert_eq!((row.len(), row[9].as_str()), (head.len() - 1, "6684"), "{table}");
    let table = fleet.ask("nvidia-smi", &["dmon", "-c", "1", "-s", "mp"]);
    assert_eq!(words(&table, 0), ["#", "gpu", "pwr", "gtemp", "mtemp", "fb", "bar1", "ccpm"]);
    assert_eq!(words(&table, 2)[4], "6684", "{table}");
    assert_eq!(words(&fleet.ask("nvidia-smi", &["dmon", "-c", "1"]), 0).len(), 13);
    assert!(!fleet.run("nvidia-smi", &["dmon", "-s", "z"]).status.success());

    let part = fleet.ask("nvidia-smi", &["-q", "-d", "MEMORY,POWER"]);
    assert!(part.contains("FB Memory Usage") && part.contains("GPU Power Readings"), "{part}");
    assert!(!part.contains("Product Name") && !part.contains("Temperature"), "{part}");
    assert!(!fleet.run("nvidia-smi", &["-q", "-d", "WEATHER"]).status.success());

    // Every field that is listed answers.
    let listed = fleet.ask("nvidia-smi", &["--help-query-gpu"]);
    let names: Vec<&str> = listed.lines().skip(2).flat_map(str::split_whitespace).collect();
    assert!(names.len() > 80, "{}", names.len());
    let query = format!("--query-gpu={}", names.join(","));
    let rows = fleet.ask("nvidia-smi", &["-i", "0", &query, "--format=csv,noheader"]);
    assert_eq!(rows.trim().split(", ").count(), names.len(), "{rows}");
    let idle = [
        "-i",
        "1",
        "--query-gpu=clocks_throttle_reasons.gpu_idle,utilization.jpeg",
        "--format=csv,noheader",
    ];
    assert_eq!(fleet.ask("nvidia-smi", &idle), "Active, 0 %\n");

    let topology = fleet.ask("nvidia-smi", &["topo", "-m"]);
    assert_eq!(words(&topology, 1)[..3], ["GPU0", "X", "NODE"], "{topology}");
    fleet.ask("nvidia-smi", &["-i", "1", "-mig", "1"]);
    fleet.ask("nvidia-smi", &["mig", "-i", "1", "-cgi", "9", "-C"]);
    let instances = fleet.ask("nvidia-smi", &["mig", "-lgi"]);
    assert_eq!(
        words(&instances, 5),
        ["|", "1", "MIG", "3g.20gb", "9", "1", "4:4", "|"],
        "{instances}"
    );
    let profiles = fleet.ask("nvidia-smi", &["mig", "-lcip"]);
    assert_eq!(words(&profiles, 4), ["1", "1", "MIG", "3g.20gb", "2*", "0/1", "42"], "{profiles}");
}

#[test]
fn a_query_that_goes_on_has_one_head() {
    let fleet = Fleet::start("1xA100-40GB", &["--freeze"]);
    let query = ["--query-gpu=index", "--format=csv", "-lms", "20"];
    let mut command = fleet.command("nvidia-smi", &query);
    let mut looks = Trainer(command.stdout(Stdio::piped()).spawn().expect("the tool"));
    let lines = BufReader::new(looks.0.stdout.take().expect("piped")).lines();
    let lines: Vec<String> = lines.take(4).map(|line| line.expect("text")).collect();
    assert_eq!(lines, ["index", "0", "0", "0"]);
}
