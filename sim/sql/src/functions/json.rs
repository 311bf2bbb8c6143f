//! Functions of `json` and `jsonb`.

use bigdecimal::BigDecimal;

use super::builtin::Builtin;
use super::function;
use crate::error::SqlError;
use crate::value::json::{quoted, raw_element, raw_field};
use crate::value::types::Type;
use crate::value::{Json, Value};

const TEXT: Type = Type::Text;
const INT: Type = Type::Int4;
const JSON: Type = Type::Json;
const JSONB: Type = Type::Jsonb;
const TEXTS: Type = Type::Array(&Type::Text);

/// The functions; operators are functions whose names begin with `op`.
pub(super) static FUNCTIONS: &[Builtin] = &[
    function("op ->", &[JSONB, TEXT], JSONB, |args| Ok(of_json(field(args)))),
    function("op ->", &[JSONB, INT], JSONB, |args| Ok(of_json(field(args)))),
    function("op ->>", &[JSONB, TEXT], TEXT, |args| Ok(text_of(field(args)))),
    function("op ->>", &[JSONB, INT], TEXT, |args| Ok(text_of(field(args)))),
    function("op #>", &[JSONB, TEXTS], JSONB, |args| Ok(of_json(at_path(args)))),
    function("op #>>", &[JSONB, TEXTS], TEXT, |args| Ok(text_of(at_path(args)))),
    function("op ->", &[JSON, TEXT], JSON, |args| Ok(raw(args).map_or(Value::Null, Value::Json))),
    function("op ->", &[JSON, INT], JSON, |args| Ok(raw(args).map_or(Value::Null, Value::Json))),
    function("op ->>", &[JSON, TEXT], TEXT, raw_text),
    function("op ->>", &[JSON, INT], TEXT, raw_text),
    function("op @>", &[JSONB, JSONB], Type::Bool, contains),
    function("op <@", &[JSONB, JSONB], Type::Bool, |args| {
        let swapped: Vec<_> = args.iter().rev().cloned().collect();
        contains(&swapped)
    }),
    function("op ?", &[JSONB, TEXT], Type::Bool, has_key),
    function("op ?|", &[JSONB, TEXTS], Type::Bool, |args| has_keys(args, false)),
    function("op ?&", &[JSONB, TEXTS], Type::Bool, |args| has_keys(args, true)),
    function("op #-", &[JSONB, TEXTS], JSONB, remove_path),
    function("jsonb_concat", &[JSONB, JSONB], JSONB, concat),
    function("jsonb_set", &[JSONB, TEXTS, JSONB], JSONB, set),
    function("jsonb_set", &[JSONB, TEXTS, JSONB, Type::Bool], JSONB, set),
    function("jsonb_typeof", &[JSONB], TEXT, type_of),
    function("jsonb_array_length", &[JSONB], INT, array_length),
    function("jsonb_extract_path_text", &[JSONB, TEXT], TEXT, |args| Ok(text_of(field(args)))),
    function("jsonb_strip_nulls", &[JSONB], JSONB, |args| {
        Ok(args.first().and_then(json).map_or(Value::Null, |json| Value::Jsonb(strip_nulls(json))))
    }),
    function("jsonb_pretty", &[JSONB], TEXT, |args| {
        Ok(args.first().and_then(json).map_or(Value::Null, |json| Value::Text(pretty(json, 0))))
    }),
];

fn json(value: &Value) -> Option<&Json> {
    match value {
        Value::Jsonb(json) => Some(json),
        _ => None,
    }
}

fn of_json(json: Option<&Json>) -> Value {
    json.map_or(Value::Null, |json| Value::Jsonb(json.clone()))
}

fn text_of(json: Option<&Json>) -> Value {
    json.and_then(Json::as_text).map_or(Value::Null, Value::Text)
}

fn field(args: &[Value]) -> Option<&Json> {
    match args {
        [Value::Jsonb(json), Value::Text(key)] => json.field(key),
        [Value::Jsonb(json), Value::Int(index)] => json.element(*index),
        _ => None,
    }
}

fn path(value: &Value) -> Vec<String> {
    match value {
        Value::Array(steps) => steps.iter().map(|step| step.text().unwrap_or_default()).collect(),
        _ => Vec::new(),
    }
}

fn at_path(args: &[Value]) -> Option<&Json> {
    let [Value::Jsonb(json), steps] = args else { return None };
    json.at_path(&path(steps))
}

fn raw(args: &[Value]) -> Option<String> {
    match args {
        [Value::Json(text), Value::Text(key)] => raw_field(text, key),
        [Value::Json(text), Value::Int(index)] => raw_element(text, *index),
        _ => None,
    }
}

fn raw_text(args: &[Value]) -> Result<Value, SqlError> {
    Ok(raw(args).and_then(|text| unquoted(&text)).map_or(Value::Null, Value::Text))
}

/// Returns a JSON text as `->>` does: strings without quotes, `None` for `null`.
fn unquoted(text: &str) -> Option<String> {
    match Json::parse(text, Type::Json) {
        Ok(Json::Null) => None,
        Ok(Json::String(string)) => Some(string),
        _ => Some(text.to_owned()),
    }
}

fn contains(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Jsonb(a), Value::Jsonb(b)] = args else { return Ok(Value::Null) };
    Ok(Value::Bool(a.contains(b)))
}

fn is_key(json: &Json, key: &str) -> bool {
    match json {
        Json::Object(_) => json.field(key).is_some(),
        Json::Array(items) => items.iter().any(|item| matches!(item, Json::String(text) if text == key)),
        Json::String(text) => text == key,
        _ => false,
    }
}

fn has_key(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Jsonb(json), Value::Text(key)] = args else { return Ok(Value::Null) };
    Ok(Value::Bool(is_key(json, key)))
}

fn has_keys(args: &[Value], all: bool) -> Result<Value, SqlError> {
    let [Value::Jsonb(json), keys] = args else { return Ok(Value::Null) };
    let keys = path(keys);
    let mut found = keys.iter().map(|key| is_key(json, key));
    Ok(Value::Bool(if all { found.all(|is| is) } else { found.any(|is| is) }))
}

fn concat(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Jsonb(a), Value::Jsonb(b)] = args else { return Ok(Value::Null) };
    let items = |json: &Json| match json {
        Json::Array(items) => items.clone(),
        other => vec![other.clone()],
    };
    Ok(Value::Jsonb(match (a, b) {
        (Json::Object(a), Json::Object(b)) => Json::object(a.iter().chain(b).cloned().collect()),
        (a, b) => Json::Array(items(a).into_iter().chain(items(b)).collect()),
    }))
}

fn set(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Jsonb(json), steps, Value::Jsonb(new), rest @ ..] = args else { return Ok(Value::Null) };
    if !matches!(json, Json::Object(_) | Json::Array(_)) {
        return Err(SqlError::new("22023", "cannot set path in scalar"));
    }
    let creates = !matches!(rest, [Value::Bool(false)]);
    changed(json, &path(steps), Some(new), creates).map(Value::Jsonb)
}

fn remove_path(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Jsonb(json), steps] = args else { return Ok(Value::Null) };
    changed(json, &path(steps), None, false).map(Value::Jsonb)
}

/// Replaces the value at a path, or removes it.
fn changed(json: &Json, steps: &[String], new: Option<&Json>, creates: bool) -> Result<Json, SqlError> {
    let Some((step, rest)) = steps.split_first() else { return Ok(json.clone()) };
    let inner = |old: &Json| -> Result<Option<Json>, SqlError> {
        if rest.is_empty() { Ok(new.cloned()) } else { changed(old, rest, new, creates).map(Some) }
    };
    match json {
        Json::Object(fields) => {
            let mut made = Vec::new();
            for (key, value) in fields {
                if key != step {
                    made.push((key.clone(), value.clone()));
                } else if let Some(value) = inner(value)? {
                    made.push((key.clone(), value));
                }
            }
            if let (true, true, Some(new), None) = (creates, rest.is_empty(), new, json.field(step)) {
                made.push((step.clone(), new.clone()));
            }
            Ok(Json::object(made))
        }
        Json::Array(items) => {
            let number = || {
                let text = format!("path element at position 1 is not an integer: \"{step}\"");
                SqlError::new("22P02", text)
            };
            let index: i64 = step.parse().map_err(|_| number())?;
            let place = crate::value::json::place(index, items.len()).filter(|place| *place < items.len());
            let mut made = items.clone();
            match (place, new) {
                (Some(place), _) => {
                    let old = made.remove(place);
                    if let Some(new) = inner(&old)? {
                        made.insert(place, new);
                    }
                }
                (None, Some(new)) if creates && rest.is_empty() && index < 0 => made.insert(0, new.clone()),
                (None, Some(new)) if creates && rest.is_empty() => made.push(new.clone()),
                _ => {}
            }
            Ok(Json::Array(made))
        }
        other => Ok(other.clone()),
    }
}

fn type_of(args: &[Value]) -> Result<Value, SqlError> {
    Ok(args.first().and_then(json).map_or(Value::Null, |json| Value::Text(json.type_name().to_owned())))
}

fn array_length(args: &[Value]) -> Result<Value, SqlError> {
    match args {
        [Value::Jsonb(Json::Array(items))] => Ok(Value::Int(i64::try_from(items.len()).unwrap_or(i64::MAX))),
        [Value::Jsonb(Json::Object(_))] => {
            Err(SqlError::new("22023", "cannot get array length of a non-array"))
        }
        _ => Err(SqlError::new("22023", "cannot get array length of a scalar")),
    }
}

fn strip_nulls(json: &Json) -> Json {
    match json {
        Json::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| *value != Json::Null);
            Json::Object(kept.map(|(key, value)| (key.clone(), strip_nulls(value))).collect())
        }
        Json::Array(items) => Json::Array(items.iter().map(strip_nulls).collect()),
        other => other.clone(),
    }
}

fn pretty(json: &Json, depth: usize) -> String {
    let indent = |depth: usize| " ".repeat(depth * 4);
    let block = |open: char, close: char, lines: Vec<String>| {
        format!("{open}\n{}\n{}{close}", lines.join(",\n"), indent(depth))
    };
    match json {
        Json::Array(items) => {
            let lines = items.iter().map(|item| indent(depth + 1) + &pretty(item, depth + 1)).collect();
            block('[', ']', lines)
        }
        Json::Object(fields) => {
            let line = |(key, value): &(String, Json)| {
                format!("{}{}: {}", indent(depth + 1), quoted(key), pretty(value, depth + 1))
            };
            block('{', '}', fields.iter().map(line).collect())
        }
        other => other.to_string(),
    }
}

/// Returns a value as `to_jsonb` does.
pub(crate) fn of_value(value: &Value, r#type: Type) -> Result<Json, SqlError> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(number) => Json::Number(BigDecimal::from(*number)),
        Value::Numeric(number) => Json::Number(number.clone()),
        Value::Float4(_) | Value::Float8(_) => {
            let text = value.text().unwrap_or_default();
            text.parse().map_or(Json::String(text), Json::Number)
        }
        Value::Jsonb(json) => json.clone(),
        Value::Json(text) => Json::parse(text, Type::Json)?,
        Value::Timestamptz(_) => {
            Json::String(format!("{}:00", value.text().unwrap_or_default().replacen(' ', "T", 1)))
        }
        Value::Timestamp(_) => Json::String(value.text().unwrap_or_default().replacen(' ', "T", 1)),
        Value::Array(items) => {
            let element = if let Type::Array(element) = r#type { *element } else { Type::Text };
            Json::Array(items.iter().map(|item| of_value(item, element)).collect::<Result<_, _>>()?)
        }
        Value::Record(_) => return Err(SqlError::unknown("to_jsonb of a row")),
        other => Json::String(other.text().unwrap_or_default()),
    })
}
