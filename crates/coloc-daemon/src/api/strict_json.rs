//! JSON as it was meant. Serde also reads a struct from a list of its fields, so that `[null, null]` would be a change
//! that changes nothing; here a struct is an object. And there is an end to how many values a request has: an empty text
//! takes three bytes to send, and sixteen times as many to keep.

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use std::cell::Cell;
use std::fmt;

/// The most values in a request.
pub(super) const MOST_VALUES: usize = 500_000;

/// JSON that is not what was asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    /// It is no JSON.
    #[error("the body is no JSON: {0}")]
    Syntax(serde_json::Error),
    /// It is something else.
    #[error("{0}")]
    Data(serde_path_to_error::Error<serde_json::Error>),
}

/// Reads a whole text.
pub(super) fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, Unreadable> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let left = Cell::new(MOST_VALUES);
    let strict_json = Strict { inner: &mut json, left: &left };
    let value = serde_path_to_error::deserialize(strict_json).map_err(|error| {
        match error.inner().is_data() {
            true => Unreadable::Data(error),
            false => Unreadable::Syntax(error.into_inner()),
        }
    })?;
    json.end().map_err(Unreadable::Syntax)?;
    Ok(value)
}

/// Counts down; an error at the end.
fn count<E: serde::de::Error>(left: &Cell<usize>) -> Result<(), E> {
    let now = left.get();
    left.set(now.checked_sub(1).ok_or_else(|| {
        E::custom(format_args!("it has more than {MOST_VALUES} values: send several requests"))
    })?);
    Ok(())
}

/// Something of serde's, with how many values may still come.
struct Strict<'a, T> {
    inner: T,
    left: &'a Cell<usize>,
}

/// A visitor that may insist on an object.
struct Visits<'a, V> {
    inner: V,
    left: &'a Cell<usize>,
    object: bool,
}

macro_rules! forward {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            let Strict { inner, left } = self;
            inner.$method(Visits { inner: visitor, left, object: false })
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
        deserialize_option deserialize_unit deserialize_seq deserialize_map deserialize_identifier
        deserialize_ignored_any
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Visits { inner: visitor, left: self.left, object: false };
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Visits { inner: visitor, left: self.left, object: false };
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Visits { inner: visitor, left: self.left, object: false };
        self.inner.deserialize_tuple(length, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Visits { inner: visitor, left: self.left, object: false };
        self.inner.deserialize_tuple_struct(name, length, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Visits { inner: visitor, left: self.left, object: true };
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Visits { inner: visitor, left: self.left, object: false };
        self.inner.deserialize_enum(name, variants, visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident($kind:ty))*) => {
        $(fn $method<E: serde::de::Error>(self, value: $kind) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Visits<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64) visit_i128(i128)
        visit_u8(u8) visit_u16(u16) visit_u32(u32) visit_u64(u64) visit_u128(u128)
        visit_f32(f32) visit_f64(f64) visit_char(char) visit_str(&str) visit_borrowed_str(&'de str)
        visit_string(String) visit_bytes(&[u8]) visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Strict { inner, left: self.left })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Strict { inner, left: self.left })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        if self.object {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self.inner));
        }
        self.inner.visit_seq(Strict { inner, left: self.left })
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Strict { inner, left: self.left })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Strict { inner, left: self.left })
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        count(self.left)?;
        self.inner.next_element_seed(Strict { inner: seed, left: self.left })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        count(self.left)?;
        self.inner.next_key_seed(Strict { inner: seed, left: self.left })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(Strict { inner: seed, left: self.left })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Strict { inner, left: self.left })
    }
}

impl<'a, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Strict<'a, A> {
    type Error = A::Error;
    type Variant = Strict<'a, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let left = self.left;
        let (value, inner) = self.inner.variant_seed(Strict { inner: seed, left })?;
        Ok((value, Strict { inner, left }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.newtype_variant_seed(Strict { inner: seed, left: self.left })
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = Visits { inner: visitor, left: self.left, object: false };
        self.inner.tuple_variant(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = Visits { inner: visitor, left: self.left, object: true };
        self.inner.struct_variant(fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::spec;
    use coloc_api::request::{ChangeRequest, Submission, Teaching, TokenRequest};
    use serde_json::{Value, json};

    fn refused<T: DeserializeOwned>(value: &Value) -> String {
        match from_slice::<T>(value.to_string().as_bytes()) {
            Ok(_) => panic!("{value} was taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_struct_is_no_list() {
        for update in [json!([]), json!([null, null]), json!(["name"])] {
            let said = refused::<ChangeRequest>(&json!({"ids": [1], "change": {"update": update}}));
            assert!(said.contains("invalid type: sequence"), "{said}");
        }
        refused::<ChangeRequest>(&json!([[1], "cancel"]));
        refused::<ChangeRequest>(&json!({"ids": [1], "change": {"signal": [9, true]}}));
        refused::<TokenRequest>(&json!([null, "label", null]));
        refused::<TokenRequest>(&json!([]));
        let submission = |change: &dyn Fn(&mut Value)| {
            let mut all = serde_json::to_value(Submission::of(spec(&["true"]))).unwrap();
            change(&mut all);
            all
        };
        let fine = submission(&|_| {});
        from_slice::<Submission>(fine.to_string().as_bytes()).unwrap();
        for (place, value) in [
            ("array", json!([[1, 2], null])),
            ("spec", json!(["name", ["true"], null, "/", [], 1])),
        ] {
            refused::<Submission>(&submission(&|all| all[place] = value.clone()));
        }
        for (place, value) in [
            ("after", json!([[1, "afterok", 0]])),
            ("warning", json!([10, 1000])),
            ("estimate", json!([1, 1, null])),
            ("estimate_flags", json!([["kind", "detail"]])),
            ("replayed", json!([1, "plain"])),
            ("directory", json!(["2f"])),
            ("command", json!([["74"]])),
            ("output", json!(["2f"])),
        ] {
            refused::<Submission>(&submission(&|all| all["spec"][place] = value.clone()));
        }
        let lesson = json!([0.5, null, null]);
        refused::<Teaching>(&json!({"command": ["a"], "directory": "/", "lesson": lesson}));
    }

    #[test]
    fn there_is_an_end_to_values_and_what_is_wrong_is_named() {
        let ids = |count: usize| json!({"ids": vec![1; count], "change": "cancel"}).to_string();
        assert!(from_slice::<ChangeRequest>(ids(MOST_VALUES - 10).as_bytes()).is_ok());
        let said = from_slice::<ChangeRequest>(ids(MOST_VALUES).as_bytes()).unwrap_err();
        assert!(said.to_string().contains("more than 500000 values"), "{said}");
        let said = refused::<ChangeRequest>(&json!({"ids": [1, "x"], "change": "cancel"}));
        assert!(said.starts_with("ids[1]: invalid type"), "{said}");
        for text in ["", "{", "[1", "nonsense", "{\"ids\":[]}x"] {
            from_slice::<ChangeRequest>(text.as_bytes()).unwrap_err();
        }
        let trailing = format!("{} x", ids(1));
        let said = from_slice::<ChangeRequest>(trailing.as_bytes()).unwrap_err();
        assert!(matches!(said, Unreadable::Syntax(_)), "{said}");
    }
}
