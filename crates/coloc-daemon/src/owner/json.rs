//! A row of a list as JSON: the same as serde writes, which looks for quotes in every key of every row and takes more than
//! twice as long.

use super::TaskView;
use super::lines::any_byte;
use itoa::Integer;

/// Writes a task.
pub(super) fn write<T: AsRef<str>>(text: &mut Vec<u8>, task: &TaskView<T>) {
    // By name, so that no field is forgotten.
    let TaskView {
        id,
        name,
        user,
        state,
        reason,
        gpus,
        gpu_ids,
        array_id,
        array_index,
        submitted_s,
        started_s,
        ended_s,
        priority,
        time_limit_s,
        gpu_mem_bytes,
        estimate_bytes,
        peak_bytes,
        attempts,
        ooms,
        preemptions,
        exit_code,
    } = task;
    let mut row = Row(text);
    row.number("{\"id\":", *id);
    row.text(",\"name\":", Some(name.as_ref()));
    row.text(",\"user\":", Some(user.as_ref()));
    row.text(",\"state\":", Some(state.name()));
    row.text(",\"reason\":", reason.as_ref().map(AsRef::as_ref));
    row.number(",\"gpus\":", *gpus);
    row.raw(",\"gpu_ids\":[");
    for (index, &gpu) in gpu_ids.iter().enumerate() {
        row.number(if index > 0 { "," } else { "" }, gpu);
    }
    row.raw("]");
    row.maybe(",\"array_id\":", *array_id);
    row.maybe(",\"array_index\":", *array_index);
    row.seconds(",\"submitted_s\":", Some(*submitted_s));
    row.seconds(",\"started_s\":", *started_s);
    row.seconds(",\"ended_s\":", *ended_s);
    row.number(",\"priority\":", *priority);
    row.seconds(",\"time_limit_s\":", *time_limit_s);
    row.maybe(",\"gpu_mem_bytes\":", *gpu_mem_bytes);
    row.maybe(",\"estimate_bytes\":", *estimate_bytes);
    row.number(",\"peak_bytes\":", *peak_bytes);
    row.number(",\"attempts\":", *attempts);
    row.number(",\"ooms\":", *ooms);
    row.number(",\"preemptions\":", *preemptions);
    row.maybe(",\"exit_code\":", *exit_code);
    row.raw("}");
}

/// A row that is being written. What stands before a value has its key, and a comma or a bracket.
struct Row<'a>(&'a mut Vec<u8>);

impl Row<'_> {
    fn raw(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn number(&mut self, before: &str, number: impl Integer) {
        self.raw(before);
        self.raw(itoa::Buffer::new().format(number));
    }

    fn maybe(&mut self, before: &str, number: Option<impl Integer>) {
        match number {
            Some(number) => self.number(before, number),
            None => self.null(before),
        }
    }

    fn null(&mut self, before: &str) {
        self.raw(before);
        self.raw("null");
    }

    fn seconds(&mut self, before: &str, seconds: Option<f64>) {
        self.raw(before);
        self.value(&seconds);
    }

    fn text(&mut self, before: &str, text: Option<&str>) {
        let Some(text) = text else { return self.null(before) };
        self.raw(before);
        if any_byte(text, |byte| byte < b' ' || byte == b'"' || byte == b'\\') {
            return self.value(&text);
        }
        self.raw("\"");
        self.raw(text);
        self.raw("\"");
    }

    fn value(&mut self, value: &impl serde::Serialize) {
        serde_json::to_writer(&mut *self.0, value).expect("plain values are written into memory");
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::task;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn serde_writes_the_same(task in task()) {
            let mut text = Vec::new();
            super::write(&mut text, &task);
            prop_assert_eq!(String::from_utf8(text), Ok(serde_json::to_string(&task).unwrap()));
        }
    }
}
