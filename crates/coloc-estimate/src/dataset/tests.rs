//! Rows as people and programs break them.

use super::*;

const MLP: &str = "Filename,Activations-Params,Activation Function,Total Activations,Total Parameters,\
    Batch Size,Max GPU Memory (MiB)\n";
const TRANSFORMER: &str = "num_classes,embedding_size,num_layers,num_heads,ff_hidden_size,dropout_rate,\
    seq_length,input_size,num_samples,batch_size,total_activations,total_parameters,max_gpu_mem_mib,status\n";
const CNN: &str = "Filename,Activations-Params,Activation Function,Total Activations,Total Parameters,\
    Max GPU Memory (MiB),Status\n";

fn mlp(batch: &str, measured: &str) -> String {
    let layers = "\"[('linear', 8, 72), ('ReLU', 8, 0)]\"";
    format!("input:8_output:8_depth:1_batch:4.out,{layers},ReLU,16,72,{batch},{measured}\n")
}

fn transformer(width: &str, layers: &str, batch: &str, measured: &str) -> String {
    format!("10,{width},{layers},8,256,0.1,128,1000,1000,{batch},1,1,{measured},SUCCESSFUL\n")
}

fn cnn(depth: &str, measured: &str) -> String {
    let name = format!(
        "depth:{depth}_arch:uniform_batch:32_act:relu_num_classes:10_base_filters:16_input_size:32_input_channels:3.out"
    );
    format!("{name},\"[('conv2d', 16384, 448)]\",ReLU,16384,448,{measured},SUCCESSFUL\n")
}

fn rows(text: &str, kind: Kind) -> Result<Vec<Row>, DatasetError> {
    read_from(text.as_bytes(), Path::new("rows.csv"), kind)
}

fn problem(text: &str, kind: Kind) -> String {
    rows(text, kind).expect_err("these rows make no sense").to_string()
}

#[test]
fn what_was_not_measured_is_not_scored() {
    for nothing in ["-1", "0", "nan", "inf", "-inf", ""] {
        let files = [
            (MLP.to_owned() + &mlp("4", nothing), Kind::Mlp),
            (CNN.to_owned() + &cnn("4", nothing), Kind::Cnn),
            (TRANSFORMER.to_owned() + &transformer("64", "2", "4", nothing), Kind::Transformer),
        ];
        for (text, kind) in files {
            let row = &rows(&text, kind).expect("the row is read")[0];
            assert_eq!(row.outcome, RowOutcome::Skipped, "{kind:?}, measured {nothing:?}");
        }
    }
    let measured = &rows(&(MLP.to_owned() + &mlp("4", "1451")), Kind::Mlp).expect("a row")[0];
    assert_eq!(measured.outcome, RowOutcome::Trained);
}

#[test]
fn absurd_sizes_are_refused_with_their_place() {
    let good = transformer("64", "2", "4", "2000");
    for (row, column) in [
        (transformer("64", "16777216", "4", "2000"), "num_layers"),
        (transformer("4294967295", "2", "4", "2000"), "embedding_size"),
        (transformer("64", "2", "4294967295", "2000"), "batch_size"),
        (transformer("64", "2", "0", "2000"), "batch_size"),
        (transformer("16777216", "10000", "1048576", "2000"), "seq_length"),
    ] {
        let said = problem(&format!("{TRANSFORMER}{good}{row}"), Kind::Transformer);
        assert!(said.contains("line 3") && said.contains(column), "{said}");
    }
    let said = problem(&(CNN.to_owned() + &cnn("4000000000", "2000")), Kind::Cnn);
    assert!(said.contains("line 2") && said.contains("depth"), "{said}");
    let wide = mlp("4", "1451").replace("'linear', 8, 72", "'linear', 4294967297, 72");
    let said = problem(&(MLP.to_owned() + &wide), Kind::Mlp);
    assert!(said.contains("line 2") && said.contains("4294967297"), "{said}");
    let nothing = mlp("4", "1451").replace("'linear', 8, 72", "'linear', 0, 72");
    let said = problem(&(MLP.to_owned() + &nothing), Kind::Mlp);
    assert!(said.contains("line 2") && said.contains("gives 0 numbers"), "{said}");
}

#[test]
fn lines_are_counted_as_an_editor_does() {
    let good = mlp("4", "1451");
    for text in [
        format!("{MLP}{good}{}", mlp("x", "1451")),
        format!("{MLP}{good}{}", mlp("x", "1451")).replace('\n', "\r\n"),
        format!("{MLP}\n{}", mlp("x", "1451")),
    ] {
        let said = problem(&text, Kind::Mlp);
        assert!(said.contains("line 3, column \"Batch Size\""), "{said}");
        let short = problem(&text.replace(",x,1451", ",4"), Kind::Mlp);
        assert!(short.contains("line 3: the row has 6 values, the header 7"), "{short}");
    }
}
