//! The table of an action in a schedule file: one key names the fault, the others are its options.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Value;

/// The fields of one fault, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields(Vec<(Cow<'static, str>, Value)>);

/// A field that could not be read, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread {
    /// The field.
    pub field: &'static str,
    /// The problem with it.
    pub problem: String,
}

impl Fields {
    /// Adds the field `key`.
    #[expect(
        clippy::expect_used,
        reason = "a fault's fields are strings, numbers, lists and tables: TOML has all of them"
    )]
    pub fn put<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) {
        let value = Value::try_from(value).expect("the field of a fault is TOML");
        self.0.push((Cow::Borrowed(key), value));
    }

    /// Adds the field `key` if it has a value.
    pub fn put_some<T: Serialize>(&mut self, key: &'static str, value: Option<&T>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// Removes and returns the field `key`, if it is there.
    ///
    /// # Errors
    ///
    /// [`Misread`] if its value is of another type.
    pub fn take<T: DeserializeOwned>(&mut self, key: &'static str) -> Result<Option<T>, Misread> {
        let Some(at) = self.0.iter().position(|(name, _)| name == key) else { return Ok(None) };
        let (_, value) = self.0.remove(at);
        let misread = |error: toml::de::Error| Misread { field: key, problem: error.message().to_owned() };
        value.try_into().map(Some).map_err(misread)
    }

    /// Removes and returns the field `key`. The error explains the field by `meaning`, such as ``by how
    /// much``.
    ///
    /// # Errors
    ///
    /// [`Misread`] if it is not there, or its value is of another type.
    pub fn need<T: DeserializeOwned>(
        &mut self,
        verb: &'static str,
        key: &'static str,
        meaning: &str,
    ) -> Result<T, Misread> {
        self.take(key)?
            .ok_or_else(|| Misread { field: verb, problem: format!("`{verb}` needs `{key}`: {meaning}") })
    }

    /// Returns the fields, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// Returns the same fields with another value for `key`.
    #[must_use]
    pub(super) fn with(mut self, key: &str, value: Value) -> Self {
        for (name, old) in &mut self.0 {
            if name == key {
                *old = value.clone();
            }
        }
        self
    }

    /// Returns the keys that are left, in order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_ref())
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;

        impl<'de> Visitor<'de> for Table {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table that names one fault, such as { pause = \"a\", for = \"5s\" }")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    fields.0.push((Cow::Owned(key), value));
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Table)
    }
}
