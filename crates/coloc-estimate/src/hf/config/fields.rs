//! The fields of a config, and where they stand.

use super::{ConfigError, ConfigFault, FieldProblem};
use serde_json::{Map, Value};

/// No layer is wider, no table longer.
pub(super) const WIDEST: u64 = 1 << 24;
/// No model has more layers.
pub(super) const DEEPEST: u32 = 10_000;

/// The fields of a config.
pub(super) struct Fields<'a> {
    object: &'a Map<String, Value>,
    text: &'a str,
}

impl<'a> Fields<'a> {
    pub(super) fn new(object: &'a Map<String, Value>, text: &'a str) -> Self {
        Fields { object, text }
    }

    /// A field that is there and not null.
    pub(super) fn get(&self, field: &str) -> Option<&'a Value> {
        self.object.get(field).filter(|value| !value.is_null())
    }

    /// An error at a field; at the start for one that is not there.
    pub(super) fn error(&self, field: &'static str, problem: FieldProblem) -> ConfigError {
        self.fault(field, ConfigFault::Field { field, problem })
    }

    /// Any fault, at a field.
    pub(super) fn fault(&self, field: &str, fault: ConfigFault) -> ConfigError {
        let key = format!("\"{field}\"");
        // Of a field that is given twice the last counts.
        let places = self.text.match_indices(&key).map(|(at, _)| at);
        let place = places
            .filter(|at| self.text[at + key.len()..].trim_start().starts_with(':'))
            .last()
            .unwrap_or(0);
        let before = &self.text[..place];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        ConfigError { line, column, fault }
    }

    pub(super) fn optional(&self, field: &'static str) -> Result<Option<u32>, ConfigError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let number = value.as_u64().filter(|number| (1..=WIDEST).contains(number));
        let number = number.ok_or_else(|| self.error(field, FieldProblem::Size))?;
        Ok(Some(number as u32))
    }

    pub(super) fn number(&self, field: &'static str) -> Result<u32, ConfigError> {
        self.optional(field)?.ok_or_else(|| self.error(field, FieldProblem::Missing))
    }

    /// A number of layers.
    pub(super) fn count(&self, field: &'static str) -> Result<u32, ConfigError> {
        self.optional_count(field)?.ok_or_else(|| self.error(field, FieldProblem::Missing))
    }

    pub(super) fn optional_count(&self, field: &'static str) -> Result<Option<u32>, ConfigError> {
        match self.optional(field)? {
            Some(count) if count > DEEPEST => Err(self.error(field, FieldProblem::Layers)),
            count => Ok(count),
        }
    }

    pub(super) fn truth(&self, field: &'static str, usual: bool) -> Result<bool, ConfigError> {
        let Some(value) = self.get(field) else { return Ok(usual) };
        value.as_bool().ok_or_else(|| self.error(field, FieldProblem::Truth))
    }

    /// Whether a layer that zeroes with this probability does anything.
    pub(super) fn drops(&self, field: &'static str) -> Result<bool, ConfigError> {
        let Some(value) = self.get(field) else { return Ok(false) };
        let share = value.as_f64().filter(|share| (0.0..=1.0).contains(share));
        Ok(share.ok_or_else(|| self.error(field, FieldProblem::Share))? > 0.0)
    }

    pub(super) fn word(&self, field: &'static str) -> Result<Option<&'a str>, ConfigError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.error(field, FieldProblem::Word))
    }

    /// The first of a list of words.
    pub(super) fn first_word(&self, field: &'static str) -> Result<Option<&'a str>, ConfigError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let words: Option<Vec<&str>> =
            value.as_array().and_then(|words| words.iter().map(Value::as_str).collect());
        let words = words.ok_or_else(|| self.error(field, FieldProblem::Words))?;
        Ok(words.first().copied())
    }

    /// A number of heads that divides the width.
    pub(super) fn heads(&self, width: u32, field: &'static str) -> Result<u32, ConfigError> {
        let heads = self.number(field)?;
        let divides = width.is_multiple_of(heads);
        divides.then_some(heads).ok_or_else(|| self.error(field, FieldProblem::Heads))
    }

    /// The width of one head, if all of them together are no wider than a layer can be.
    pub(super) fn head_width(
        &self,
        heads: u32,
        each: u32,
        field: &'static str,
    ) -> Result<u32, ConfigError> {
        let fits = u64::from(heads) * u64::from(each) <= WIDEST;
        fits.then_some(each).ok_or_else(|| self.error(field, FieldProblem::TooWide))
    }
}
