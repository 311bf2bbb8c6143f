//! Functions of texts and bytes.

use base64::Engine;
use md5::Digest;

use super::builtin::Builtin;
use super::function;
use crate::error::SqlError;
use crate::value::Value;
use crate::value::types::Type;

const TEXT: Type = Type::Text;
const INT: Type = Type::Int4;
const BYTES: Type = Type::Bytea;
const ANY: Type = Type::Void;

const fn variadic(
    name: &'static str,
    args: &'static [Type],
    result: Type,
    run: fn(&[Value]) -> Result<Value, SqlError>,
) -> Builtin {
    Builtin { name, args, result, is_variadic: true, is_strict: false, run }
}

/// The functions.
pub(super) static FUNCTIONS: &[Builtin] = &[
    function("length", &[TEXT], INT, |args| on_text(args, |text| count(text.chars().count()))),
    function("char_length", &[TEXT], INT, |args| on_text(args, |text| count(text.chars().count()))),
    function("length", &[BYTES], INT, |args| on_bytes(args, |bytes| count(bytes.len()))),
    function("octet_length", &[TEXT], INT, |args| on_text(args, |text| count(text.len()))),
    function("octet_length", &[BYTES], INT, |args| on_bytes(args, |bytes| count(bytes.len()))),
    function("lower", &[TEXT], TEXT, |args| on_text(args, |text| Value::Text(text.to_lowercase()))),
    function("upper", &[TEXT], TEXT, |args| on_text(args, |text| Value::Text(text.to_uppercase()))),
    function("reverse", &[TEXT], TEXT, |args| on_text(args, |t| Value::Text(t.chars().rev().collect()))),
    function("substr", &[TEXT, INT], TEXT, substr),
    function("substr", &[TEXT, INT, INT], TEXT, substr),
    function("substring", &[TEXT, INT], TEXT, substr),
    function("substring", &[TEXT, INT, INT], TEXT, substr),
    function("left", &[TEXT, INT], TEXT, |args| side(args, true)),
    function("right", &[TEXT, INT], TEXT, |args| side(args, false)),
    function("strpos", &[TEXT, TEXT], INT, position),
    function("replace", &[TEXT, TEXT, TEXT], TEXT, replace),
    function("btrim", &[TEXT], TEXT, |args| trim(args, true, true)),
    function("btrim", &[TEXT, TEXT], TEXT, |args| trim(args, true, true)),
    function("ltrim", &[TEXT], TEXT, |args| trim(args, true, false)),
    function("ltrim", &[TEXT, TEXT], TEXT, |args| trim(args, true, false)),
    function("rtrim", &[TEXT], TEXT, |args| trim(args, false, true)),
    function("rtrim", &[TEXT, TEXT], TEXT, |args| trim(args, false, true)),
    function("repeat", &[TEXT, INT], TEXT, repeat),
    function("lpad", &[TEXT, INT], TEXT, lpad),
    function("lpad", &[TEXT, INT, TEXT], TEXT, lpad),
    function("split_part", &[TEXT, TEXT, INT], TEXT, split_part),
    function("starts_with", &[TEXT, TEXT], Type::Bool, starts_with),
    function("md5", &[TEXT], TEXT, |args| on_text(args, |text| Value::Text(md5_hex(text.as_bytes())))),
    function("md5", &[BYTES], TEXT, |args| on_bytes(args, |bytes| Value::Text(md5_hex(bytes)))),
    function("encode", &[BYTES, TEXT], TEXT, encode),
    function("decode", &[TEXT, TEXT], BYTES, decode),
    function("convert_to", &[TEXT, TEXT], BYTES, |args| on_text(args, |text| Value::Bytea(text.into()))),
    function("convert_from", &[BYTES, TEXT], TEXT, convert_from),
    function("textcat", &[TEXT, TEXT], TEXT, concat),
    function("byteacat", &[BYTES, BYTES], BYTES, concat),
    function("quote_ident", &[TEXT], TEXT, |args| on_text(args, |text| Value::Text(quote_ident(text)))),
    function("quote_literal", &[TEXT], TEXT, |args| on_text(args, |text| Value::Text(quote_literal(text)))),
    function("pg_typeof", &[ANY], TEXT, |_| Err(SqlError::unknown("the function pg_typeof"))),
    variadic("concat", &[ANY], TEXT, concat),
    variadic("concat_ws", &[TEXT, ANY], TEXT, concat_ws),
    variadic("format", &[TEXT, ANY], TEXT, format),
];

fn count(number: usize) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn on_text(args: &[Value], run: impl FnOnce(&str) -> Value) -> Result<Value, SqlError> {
    Ok(match args {
        [Value::Text(text), ..] => run(text),
        _ => Value::Null,
    })
}

fn on_bytes(args: &[Value], run: impl FnOnce(&[u8]) -> Value) -> Result<Value, SqlError> {
    Ok(match args {
        [Value::Bytea(bytes), ..] => run(bytes),
        _ => Value::Null,
    })
}

fn substr(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(text), Value::Int(from), rest @ ..] = args else { return Ok(Value::Null) };
    let end = match rest {
        [Value::Int(len)] if *len < 0 => {
            return Err(SqlError::new("22011", "negative substring length not allowed"));
        }
        [Value::Int(len)] => from.saturating_add(*len),
        _ => i64::MAX,
    };
    let inside = text.chars().zip(1_i64..).filter(|(_, place)| place >= from && *place < end);
    Ok(Value::Text(inside.map(|(c, _)| c).collect()))
}

fn side(args: &[Value], is_left: bool) -> Result<Value, SqlError> {
    let [Value::Text(text), Value::Int(number)] = args else { return Ok(Value::Null) };
    let len = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let kept = if *number < 0 { (len + number).max(0) } else { (*number).min(len) };
    let (kept, len) = (usize::try_from(kept).unwrap_or(0), usize::try_from(len).unwrap_or(0));
    let skipped = if is_left { 0 } else { len - kept };
    Ok(Value::Text(text.chars().skip(skipped).take(kept).collect()))
}

fn position(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(text), Value::Text(part)] = args else { return Ok(Value::Null) };
    let before = text.find(part.as_str()).and_then(|at| text.get(..at));
    Ok(before.map_or(Value::Int(0), |before| count(before.chars().count() + 1)))
}

fn replace(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(text), Value::Text(from), Value::Text(to)] = args else { return Ok(Value::Null) };
    Ok(Value::Text(if from.is_empty() { text.clone() } else { text.replace(from.as_str(), to) }))
}

fn trim(args: &[Value], at_start: bool, at_end: bool) -> Result<Value, SqlError> {
    let [Value::Text(text), rest @ ..] = args else { return Ok(Value::Null) };
    let set: Vec<char> = match rest {
        [Value::Text(set)] => set.chars().collect(),
        _ => vec![' '],
    };
    let text = if at_start { text.trim_start_matches(&set[..]) } else { text };
    Ok(Value::Text(if at_end { text.trim_end_matches(&set[..]) } else { text }.to_owned()))
}

fn repeat(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(text), Value::Int(times)] = args else { return Ok(Value::Null) };
    let times = usize::try_from(*times).unwrap_or(0);
    if text.len().saturating_mul(times) > 1 << 30 {
        return Err(SqlError::new("54000", "requested length too large"));
    }
    Ok(Value::Text(text.repeat(times)))
}

fn lpad(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(text), Value::Int(len), rest @ ..] = args else { return Ok(Value::Null) };
    let fill = match rest {
        [Value::Text(fill)] => fill.as_str(),
        _ => " ",
    };
    let len = usize::try_from(*len).unwrap_or(0);
    if len > 1 << 28 {
        return Err(SqlError::new("54000", "requested length too large"));
    }
    let missing = len.saturating_sub(text.chars().count());
    let padding = fill.chars().cycle().take(if fill.is_empty() { 0 } else { missing });
    Ok(Value::Text(padding.chain(text.chars()).take(len).collect()))
}

fn split_part(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(text), Value::Text(by), Value::Int(number)] = args else { return Ok(Value::Null) };
    if *number == 0 {
        return Err(SqlError::new("22023", "field position must not be zero"));
    }
    let parts: Vec<_> = if by.is_empty() { vec![text.as_str()] } else { text.split(by.as_str()).collect() };
    let index = if *number > 0 { number - 1 } else { *number };
    let place = crate::value::json::place(index, parts.len());
    Ok(Value::Text(place.and_then(|place| parts.get(place)).copied().unwrap_or_default().to_owned()))
}

fn starts_with(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(text), Value::Text(start)] = args else { return Ok(Value::Null) };
    Ok(Value::Bool(text.starts_with(start.as_str())))
}

fn md5_hex(bytes: &[u8]) -> String {
    hex::encode(md5::Md5::digest(bytes))
}

fn encode(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Bytea(bytes), Value::Text(format)] = args else { return Ok(Value::Null) };
    Ok(Value::Text(match format.to_ascii_lowercase().as_str() {
        "hex" => hex::encode(bytes),
        "base64" => {
            let whole = base64::engine::general_purpose::STANDARD.encode(bytes);
            let lines: Vec<_> = whole.as_bytes().chunks(76).map(String::from_utf8_lossy).collect();
            lines.join("\n")
        }
        "escape" => return Err(SqlError::unknown("the encoding 'escape'")),
        _ => return Err(SqlError::new("22023", format!("unrecognized encoding: \"{format}\""))),
    }))
}

fn decode(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(text), Value::Text(format)] = args else { return Ok(Value::Null) };
    match format.to_ascii_lowercase().as_str() {
        "hex" => Value::parse(Type::Bytea, &format!("\\x{text}")),
        "base64" => {
            let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
            let decoded = base64::engine::general_purpose::STANDARD.decode(plain);
            decoded.map(Value::Bytea).map_err(|_| SqlError::new("22023", "invalid base64 end sequence"))
        }
        "escape" => Err(SqlError::unknown("the encoding 'escape'")),
        _ => Err(SqlError::new("22023", format!("unrecognized encoding: \"{format}\""))),
    }
}

fn convert_from(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Bytea(bytes), _] = args else { return Ok(Value::Null) };
    let text = String::from_utf8(bytes.clone());
    text.map(Value::Text).map_err(|_| SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\""))
}

fn concat(args: &[Value]) -> Result<Value, SqlError> {
    if let [Value::Bytea(a), Value::Bytea(b)] = args {
        return Ok(Value::Bytea(a.iter().chain(b).copied().collect()));
    }
    Ok(Value::Text(args.iter().filter_map(Value::text).collect()))
}

fn concat_ws(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(separator), rest @ ..] = args else { return Ok(Value::Null) };
    let parts: Vec<_> = rest.iter().filter_map(Value::text).collect();
    Ok(Value::Text(parts.join(separator)))
}

fn quote_ident(name: &str) -> String {
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let is_reserved = ["all", "and", "as", "default", "desc", "end", "from", "group", "in", "limit", "not"]
        .iter()
        .chain(&["null", "on", "or", "order", "select", "table", "then", "to", "user", "when", "where"])
        .any(|word| *word == name);
    if starts && is_plain && !is_reserved {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!(" E'{}'", quoted.replace('\\', "\\\\")).trim().to_owned()
    } else {
        format!("'{quoted}'")
    }
}

/// Fills `%s`, `%I` and `%L`.
fn format(args: &[Value]) -> Result<Value, SqlError> {
    let [Value::Text(pattern), rest @ ..] = args else { return Ok(Value::Null) };
    let (mut filled, mut rest, mut chars) = (String::new(), rest.iter(), pattern.chars());
    while let Some(c) = chars.next() {
        if c != '%' {
            filled.push(c);
            continue;
        }
        let kind = chars.next();
        if kind == Some('%') {
            filled.push('%');
            continue;
        }
        let mut next = || rest.next().ok_or_else(|| SqlError::new("22023", "too few arguments for format()"));
        filled.push_str(&match kind {
            Some('s') => next()?.text().unwrap_or_default(),
            Some('I') => {
                let null = || SqlError::new("22004", "null values cannot be formatted as an SQL identifier");
                quote_ident(&next()?.text().ok_or_else(null)?)
            }
            Some('L') => next()?.text().map_or("NULL".to_owned(), |text| quote_literal(&text)),
            Some(other) => {
                let text = format!("unrecognized format() type specifier \"{other}\"");
                let hint = "For a single \"%\" use \"%%\".";
                return Err(SqlError::new("22023", text).hint(hint));
            }
            None => {
                let hint = "For a single \"%\" use \"%%\".";
                return Err(SqlError::new("22023", "unterminated format() type specifier").hint(hint));
            }
        });
    }
    Ok(Value::Text(filled))
}
