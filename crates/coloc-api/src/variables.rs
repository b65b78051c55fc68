//! A task's environment. Thousands of tasks come from one shell, so a copy shares all of it.

use crate::text::RawText;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// A variable: its name and its value.
pub type Variable = (RawText, RawText);

/// Variables, in the order in which they were given.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug, Serialize)]
#[serde(transparent)]
pub struct Variables(Arc<[Variable]>);

impl Variables {
    /// Something else has a copy.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl Deref for Variables {
    type Target = [Variable];

    fn deref(&self) -> &[Variable] {
        &self.0
    }
}

impl From<Vec<Variable>> for Variables {
    fn from(variables: Vec<Variable>) -> Self {
        Variables(variables.into())
    }
}

impl FromIterator<Variable> for Variables {
    fn from_iter<I: IntoIterator<Item = Variable>>(variables: I) -> Self {
        Variables(variables.into_iter().collect())
    }
}

impl<'de> Deserialize<'de> for Variables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Vec::into)
    }
}

impl JsonSchema for Variables {
    fn schema_name() -> Cow<'static, str> {
        "Variables".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<Variable>::json_schema(generator)
    }
}
