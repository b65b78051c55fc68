//! Reading traces that other programs or users wrote, carelessly or with intent.

use coloc_sim::trace::{Format, Generator, TraceError, TraceErrorKind, read, write};
use coloc_sim::{Trace, TraceTask};
use proptest::prelude::*;
use std::path::Path;

fn parse(format: Format, text: impl AsRef<[u8]>) -> Result<Trace, TraceError> {
    read(Path::new("some/trace.csv"), text.as_ref(), format)
}

/// The whole message about a file that cannot be read.
fn complaint(format: Format, text: impl AsRef<[u8]>) -> String {
    parse(format, text).expect_err("a bad trace").to_string()
}

/// A small good file of each format.
const SAMPLES: [(Format, &str); 6] = [
    (
        Format::Coloc,
        "submit_s,task,gpus,duration_s,memory_mib,sm\n0,good,1,60,100,0.5\n9,b,2,6,7,1\n",
    ),
    (Format::Carma, "submit_time_s,task\n0,resnet\n7.5,vgg\n"),
    (Format::Tiresias, "num_gpu,submit_time,duration\n1,0,100\n8,5,7\n"),
    (
        Format::Alibaba,
        "num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n1,460,5,105,5\n2,1000,7,90,8\n",
    ),
    (Format::Gavel, "A3C\tx y\t-n\t1\t7176\t0.5\t1\nLM (batch size 5)\tx\tx\t0\t69880\t10\t8\n"),
    (
        Format::Sacct,
        "JobID|State|Submit|Elapsed|AllocTRES\n7|FAILED|2024-02-28T23:59:59|1-00:01:00|gres/gpu=1\n",
    ),
];

const HEADER: &str = "submit_s,task,gpus,duration_s,memory_mib,sm\n";

/// A file with a good row and then this one.
fn second_row(row: &str) -> String {
    complaint(Format::Coloc, format!("{HEADER}0,good,1,60,100,0.5\n{row}\n"))
}

#[test]
fn a_bad_value_is_named_with_its_line_and_column() {
    let cases = [
        ("x,a,1,60,100,0.5", "submit_s", r#""x" is not a number of seconds"#),
        ("-1,a,1,60,100,0.5", "submit_s", r#""-1" is not a number of seconds"#),
        ("NaN,a,1,60,100,0.5", "submit_s", r#""NaN" is not"#),
        ("inf,a,1,60,100,0.5", "submit_s", r#""inf" is not"#),
        ("1e300,a,1,60,100,0.5", "submit_s", r#""1e300" is not"#),
        (",a,1,60,100,0.5", "submit_s", r#""" is not a number of seconds"#),
        ("0,,1,60,100,0.5", "task", "is not the name of a task"),
        ("0,a,0,60,100,0.5", "gpus", r#""0" is not a number of GPUs"#),
        ("0,a,1.5,60,100,0.5", "gpus", r#""1.5" is not a number of GPUs"#),
        ("0,a,-1,60,100,0.5", "gpus", r#""-1" is not a number of GPUs"#),
        ("0,a,99999999999999999999,60,100,0.5", "gpus", "is not a number of GPUs"),
        ("0,a,1,0,100,0.5", "duration_s", r#""0" is not"#),
        ("0,a,1,-5,100,0.5", "duration_s", r#""-5" is not"#),
        ("0,a,1,1e18,100,0.5", "duration_s", r#""1e18" is not"#),
        ("0,a,1,nan,100,0.5", "duration_s", r#""nan" is not"#),
        ("0,a,1,60,-1,0.5", "memory_mib", r#""-1" is not MiB"#),
        ("0,a,1,60,1e12,0.5", "memory_mib", r#""1e12" is not MiB"#),
        ("0,a,1,60,100,1.01", "sm", r#""1.01" is not a share from 0 to 1"#),
        ("0,a,1,60,100,-0.1", "sm", r#""-0.1" is not a share"#),
        ("0,a,1,60,100,inf", "sm", r#""inf" is not a share"#),
        ("0,a,1,60,100,0.5\0", "sm", "is not a share"),
    ];
    for (row, column, what) in cases {
        let message = second_row(row);
        let place = format!("some/trace.csv, line 3, column {column}: ");
        assert!(message.starts_with(&place), "{row:?}: {message}");
        assert!(message.contains(what), "{row:?}: {message}");
    }
}

#[test]
fn a_task_that_nobody_knows_must_describe_itself() {
    for (row, missing) in
        [("0,a,1,,100,0.5", "duration_s"), ("0,a,1,60,,0.5", "memory_mib"), ("0,a,1,60,100,", "sm")]
    {
        let message = second_row(row);
        assert!(message.contains("line 3, column task: unknown task \"a\""), "{message}");
        assert!(message.ends_with(&format!("gives no {missing}")), "{message}");
    }
    let message = complaint(Format::Carma, "submit_time_s,task\n0,resnet\n5,resnet999\n");
    assert!(message.contains("line 3, column task: unknown task \"resnet999\""), "{message}");
}

#[test]
fn a_carma_trace_is_complained_about_in_its_own_words() {
    let message = complaint(Format::Carma, "submit_time_s,task\n0,resnet\nsoon,resnet\n");
    assert!(message.contains("line 3, column submit_time_s: \"soon\""), "{message}");
}

#[test]
fn rows_must_be_as_long_as_the_header() {
    for row in ["0,a,1,60,100", "0,a,1,60,100,0.5,7"] {
        let message = second_row(row);
        assert!(message.contains("line 3: not a CSV file: the row has"), "{message}");
    }
}

#[test]
fn headers_are_checked() {
    let cases = [
        ("task,gpus\na,1\n", r#"line 1: no column "submit_s""#),
        ("submit_s\n0\n", r#"line 1: no column "task""#),
        ("user,gpus\na,1\n", r#"line 1: no columns "submit_s", "task" in the header; expected"#),
        ("submit_s,task,submit_s\n0,resnet,1\n", r#"line 1: column "submit_s" is there twice"#),
        (
            "Submit_S,task\n0,resnet\n",
            r#"line 1: no column "submit_s" in the header, which has "Submit_S" instead"#,
        ),
        ("0,resnet\n", r#"in the header, which has "0", "resnet" instead"#),
    ];
    for (text, expected) in cases {
        let message = complaint(Format::Coloc, text);
        assert!(message.contains(expected), "{text:?}: {message}");
    }
    let message = complaint(Format::Carma, "submit_s,task\n0,resnet\n");
    assert!(message.contains(r#"no column "submit_time_s" in the header, which has "submit_s""#));
}

#[test]
fn columns_that_are_not_known_are_passed_over_and_told() {
    let trace = parse(Format::Coloc, "submit_s,task,colour\n0,resnet,red\n").expect("a trace");
    let told = trace.unknown_columns().expect("a column").to_string();
    assert!(told.starts_with(r#"passed over column "colour", which this format does not have"#));
    let plain = parse(Format::Coloc, "submit_s,task\n0,resnet\n").expect("a trace");
    assert_eq!(plain.unknown_columns(), None);
}

#[test]
fn nothing_is_not_a_trace() {
    let header = "submit_time_s,task\n";
    let error = parse(Format::Carma, header).expect_err("no tasks");
    assert!(matches!(error.kind, TraceErrorKind::Empty));
    assert_eq!(error.to_string(), "some/trace.csv: the trace has no tasks");
    for text in ["", "\n", "\r\n\r\n", "\u{feff}"] {
        assert!(parse(Format::Carma, text).is_err(), "{text:?}");
    }
}

#[test]
fn what_editors_and_other_systems_do_to_a_file_is_forgiven() {
    let plain = parse(Format::Carma, "submit_time_s,task\n0,resnet\n7.5,vgg\n").expect("valid");
    for text in [
        "\u{feff}submit_time_s,task\n0,resnet\n7.5,vgg\n",
        "submit_time_s,task\r\n0,resnet\r\n7.5,vgg\r\n",
        "submit_time_s,task\n0,resnet\n7.5,vgg",
        "submit_time_s , task\n 0 , resnet\n\n7.5,vgg\n\n",
        "task,submit_time_s\nresnet,0\nvgg,7.5\n",
        "submit_time_s,task\n\"0\",\"resnet\"\n7.5,vgg\n",
    ] {
        assert_eq!(parse(Format::Carma, text).expect(text), plain, "{text:?}");
    }
}

#[test]
fn lines_are_counted_as_an_editor_counts_them() {
    for text in [
        "submit_time_s,task\r\n0,resnet\r\nx,resnet\r\n",
        "submit_time_s,task\n\nx,resnet\n",
        "\u{feff}submit_time_s,task\n0,resnet\nx,resnet\n",
        "submit_time_s,task\n\"0\",\"resnet\"\nx,resnet\n",
    ] {
        let message = complaint(Format::Carma, text);
        assert!(message.contains("line 3, "), "{text:?}: {message}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut text = b"submit_time_s,task\n0,resnet\n".to_vec();
    text.extend(b"1,\xff\xfe\n");
    let message = complaint(Format::Carma, &text);
    assert!(message.contains("line 3: not a CSV file: the text is not UTF-8"), "{message}");
    for junk in [&b"\x00\x01\x02"[..], b"\x7fELF\x02\x01\x01", b"\xff\xff\xff\xff", b"PK\x03\x04"] {
        assert!(complaint(Format::Coloc, junk).contains("line 1"), "{junk:?}");
    }
}

#[test]
fn a_line_of_a_million_characters_is_read_or_refused() {
    let long = "a".repeat(1_000_000);
    let trace = parse(Format::Coloc, format!("{HEADER}0,{long},1,60,100,0.5\n")).expect("valid");
    assert_eq!(trace.name(&trace.tasks()[0]).len(), long.len());
    assert!(parse(Format::Coloc, &long).is_err());
    assert!(parse(Format::Coloc, format!("{HEADER}{}\n", ",".repeat(1_000_000))).is_err());
    assert!(parse(Format::Coloc, format!("{HEADER}\"{long}")).is_err(), "a quote never closed");
}

#[test]
fn tasks_are_ordered_by_submission_and_ties_keep_their_order() {
    let text = "submit_time_s,task\n5,vgg\n0,resnet\n5,UNet\n0,dlrm\n";
    let trace = parse(Format::Carma, text).expect("valid");
    let names: Vec<_> = trace.tasks().iter().map(|task| trace.name(task)).collect();
    assert_eq!(names, ["resnet", "dlrm", "vgg", "UNet"]);
}

#[test]
fn columns_that_are_left_out_come_from_the_catalogue() {
    let text = "submit_s,task,memory_mib,exclusive\n0,BERT_base,,true\n1,BERT_base,5,0\n";
    let trace = parse(Format::Coloc, text).expect("valid");
    let [first, second] = trace.tasks() else { panic!("two tasks") };
    assert_eq!((first.profile.memory.mib(), second.profile.memory.mib()), (19_828.0, 5.0));
    assert_eq!((first.exclusive, second.exclusive), (true, false));
    assert_eq!(first.duration.secs(), 14.92 * 60.0);
}

/// Everything about the tasks of a trace but the numbers that stand for names.
fn contents(trace: &Trace) -> Vec<(String, String, String)> {
    let tasks = trace.tasks().iter().map(|task| {
        let facts = (task.submit, task.gpus, task.duration, task.profile, task.exclusive);
        (trace.name(task).to_owned(), trace.user(task).to_owned(), format!("{facts:?}"))
    });
    tasks.collect()
}

fn written(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(trace, &mut bytes).expect("memory takes everything");
    bytes
}

#[test]
fn what_is_written_is_read_back() {
    let generator = Generator { tasks: 500, gpus: 16, load: 0.9, widest: 4, seed: 3 };
    let trace = generator.generate().expect("a valid request");
    let bytes = written(&trace);
    let again = parse(Format::Coloc, &bytes).expect("our own format");
    assert_eq!(contents(&again), contents(&trace));
    assert_eq!(written(&again), bytes);
}

proptest! {
    #[test]
    fn names_survive_writing(name in "[^\\s\\p{C}]([ -~é中]{0,12}[^\\s\\p{C}])?") {
        let quoted = name.replace('"', "\"\"");
        let text = format!("{HEADER}0.001,\"{quoted}\",3,12.345,100.25,0.125\n");
        let trace = parse(Format::Coloc, text).expect("valid");
        prop_assert_eq!(trace.name(&trace.tasks()[0]), name);
        let again = parse(Format::Coloc, written(&trace)).expect("our own format");
        prop_assert_eq!(contents(&again), contents(&trace));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (format, _) in SAMPLES {
            let _ = parse(format, &bytes);
        }
    }

    /// Good files with a few bytes changed, taken out or doubled.
    #[test]
    fn no_damage_makes_a_reader_panic(
        which in 0..SAMPLES.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, any::<u8>()), 1..8),
    ) {
        let (format, sample) = SAMPLES[which];
        let mut bytes = sample.as_bytes().to_vec();
        for (place, kind, byte) in damage {
            let at = place.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes[at] = b"0123456789-+.,:|\t\n\"eE"[byte as usize % 21],
                2 => bytes.insert(at, bytes[at]),
                _ => drop(bytes.drain(at..(at + byte as usize % 9).min(bytes.len() - 1).max(at))),
            }
        }
        if let Err(error) = parse(format, &bytes) {
            let said = error.to_string();
            let nothing =
                matches!(error.kind, TraceErrorKind::Empty | TraceErrorKind::AllPassedOver(_));
            prop_assert!(said.contains(", line ") || nothing, "{said}");
        }
    }

    #[test]
    fn no_row_makes_the_reader_panic(
        values in prop::collection::vec("[-+0-9.eEinfaNul\"\\x00 ]{0,8}|resnet|1", 6),
    ) {
        let text = format!("{HEADER}{}\n", values.join(","));
        if let Err(error) = parse(Format::Coloc, text) {
            let said = error.to_string();
            let is_placed = said.contains(", line ") || matches!(error.kind, TraceErrorKind::Empty);
            prop_assert!(is_placed, "{said}");
        }
    }
}

const PHASES: &str = "submit_s,task,gpus,duration_s,memory_mib,sm,load_s,load_mib,eval_every_s,eval_s,eval_mib,\
                      grow_after_s,grow_mib,declared_mib\n";

#[test]
fn phases_and_declarations_are_read_and_written_back() {
    let text = format!(
        "{PHASES}0,plain,1,60,100,0.5,,,,,,,,\n1,all,1,600,100,0.5,30,50,100,10,150,200.5,180,400\n\
         2,loads,1,600,100,0.5,30,,,,,,,\n"
    );
    let trace = parse(Format::Coloc, text).expect("a good trace");
    let [plain, all, loads] = trace.tasks() else { panic!("three tasks") };
    assert_eq!((plain.phases, plain.declared), (coloc_physics::Phases::NONE, None));
    assert_eq!(all.memory_curve().peak().mib(), 180.0);
    assert_eq!(all.declared.map(|bytes| bytes.mib()), Some(400.0));
    assert!(loads.phases.load.is_some() && loads.phases.evaluate.is_none());
    let again = parse(Format::Coloc, written(&trace)).expect("as it was written");
    assert_eq!(again, trace);
    let header = written(&parse(Format::Coloc, SAMPLES[0].1).expect("a good trace"));
    let header = String::from_utf8(header).expect("text");
    assert!(!header.contains("load_s") && !header.contains("declared_mib"), "{header}");
}

#[test]
fn estimates_are_read_and_written_back() {
    let header = "submit_s,task,gpus,duration_s,memory_mib,sm,estimate_mib,bound_mib\n";
    let text =
        format!("{header}0,a,1,60,100,0.5,90,120\n1,b,1,60,100,0.5,90,\n2,c,1,60,100,0.5,,\n");
    let trace = parse(Format::Coloc, text).expect("a good trace");
    let mib = |task: &TraceTask| task.recorded.map(|it| (it.peak.mib(), it.bound.mib()));
    let recorded: Vec<_> = trace.tasks().iter().map(mib).collect();
    assert_eq!(recorded, [Some((90.0, 120.0)), Some((90.0, 90.0)), None]);
    assert_eq!(parse(Format::Coloc, written(&trace)).expect("as it was written"), trace);
    for (row, column) in [(",120", "estimate_mib"), ("90,80", "bound_mib"), ("-1,", "estimate_mib")]
    {
        let said = complaint(Format::Coloc, format!("{header}0,a,1,60,100,0.5,{row}\n"));
        assert!(said.contains(column) && said.contains("line 2"), "{row}: {said}");
    }
}

#[test]
fn columns_of_a_phase_come_together() {
    let cases = [
        (",50,,,,,,", "load_s"),
        (",,100,,150,,,", "eval_every_s"),
        (",,100,100,150,,,", "eval_every_s"),
        (",,0.5,0.1,150,,,", "eval_every_s"),
        (",,,,150,,,", "eval_every_s"),
        (",,100,10,,,,", "eval_mib"),
        (",,,,,200,,", "grow_mib"),
        (",,,,,,180,", "grow_after_s"),
        (",,,,,,,-1", "declared_mib"),
        ("x,,,,,,,", "load_s"),
    ];
    for (row, column) in cases {
        let said = complaint(Format::Coloc, format!("{PHASES}0,a,1,60,100,0.5,{row}\n"));
        assert!(said.contains(column) && said.contains("line 2"), "{row}: {said}");
    }
}
