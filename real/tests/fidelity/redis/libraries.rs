//! Draws scripts that call the libraries `bit`, `cjson`, `cmsgpack` and `struct`.

use proptest::collection::vec;
use proptest::prelude::{any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::{BoxedStrategy, Just, Strategy};

/// The functions, with the number of arguments that most of them take.
const FUNCTIONS: &[(&str, usize)] = &[
    ("bit.tobit", 1),
    ("bit.tohex", 2),
    ("bit.bnot", 1),
    ("bit.band", 3),
    ("bit.bor", 3),
    ("bit.bxor", 2),
    ("bit.lshift", 2),
    ("bit.rshift", 2),
    ("bit.arshift", 2),
    ("bit.rol", 2),
    ("bit.ror", 2),
    ("bit.bswap", 1),
    ("struct.pack", 3),
    ("struct.unpack", 3),
    ("struct.size", 1),
    ("cjson.encode", 1),
    ("cjson.decode", 1),
    ("cjson.encode_sparse_array", 3),
    ("cjson.encode_max_depth", 1),
    ("cjson.decode_max_depth", 1),
    ("cjson.encode_number_precision", 1),
    ("cjson.encode_keep_buffer", 1),
    ("cjson.encode_invalid_numbers", 1),
    ("cjson.decode_invalid_numbers", 1),
    ("cmsgpack.pack", 2),
    ("cmsgpack.unpack", 1),
    ("cmsgpack.unpack_one", 2),
    ("cmsgpack.unpack_limit", 3),
];

/// Simple values, and those at the limits of formats. Of the long texts, `cmsgpack.unpack` makes few values:
/// with more than twenty results Lua's own `pcall` fails a check that debug builds of Lua make.
const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "31",
    "32",
    "-32",
    "-33",
    "127",
    "128",
    "-128",
    "-129",
    "255",
    "256",
    "65535",
    "65536",
    "-32768",
    "-32769",
    "2^31",
    "2^31 - 1",
    "-2^31",
    "-2^31 - 1",
    "2^32",
    "2^32 - 1",
    "2^53",
    "2^63",
    "-2^63",
    "2^64",
    "0.5",
    "-1.5",
    "1/3",
    "1e15",
    "1e-7",
    "1e300",
    "1/0",
    "-1/0",
    "0/0",
    "nil",
    "true",
    "false",
    "cjson.null",
    "tostring",
    "{}",
    "'12'",
    "'0x1f'",
    "'text'",
    "''",
    "'on'",
    "'off'",
    "'null'",
    "'a/b\\\"c\\\\\\n\\0\\127\\200'",
    "('\\172'):rep(40)",
    "('\\217'):rep(300)",
];

/// The letters of formats, with arguments that suit them.
const ITEMS: &[(&str, &str)] = &[
    ("b", "-5"),
    ("B", "200"),
    ("h", "-300"),
    ("H", "40000"),
    ("l", "-2^40"),
    ("L", "2^63"),
    ("T", "12"),
    ("i", "-70000"),
    ("I", "4e9"),
    ("i3", "-2"),
    ("I7", "2^50"),
    ("i9", "-1"),
    ("i0", "1"),
    ("f", "1.5"),
    ("d", "-1/3"),
    ("s", "'text'"),
    ("c3", "'abc'"),
    ("c0", "'rest'"),
    ("c5", "'abc'"),
    ("x", ""),
    (">", ""),
    ("<", ""),
    ("!", ""),
    ("!4", ""),
    ("!3", ""),
    (" ", ""),
    ("z", ""),
    ("i40", "1"),
];

/// Pieces of JSON, whole and broken ones.
const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "1",
    "-2.5e3",
    "0x1F",
    "007",
    "+1",
    "nan",
    "-Infinity",
    "1e999",
    "true",
    "false",
    "null",
    "nul",
    "\"a\"",
    "\"\\\\u00e9\"",
    "\"\\\\ud83d\\\\ude00\"",
    "\"\\\\ud83d\"",
    "\"\\\\n\\\\x\"",
    "\"open",
    " ",
    "\\t\\n",
    "\\0",
    "[1,2]",
    "{\"a\":1,\"b\":[]}",
    "[[[]]]",
    ",",
    "{\"k\":",
    "[1,",
];

/// Draws scripts.
pub(super) fn scripts() -> BoxedStrategy<String> {
    let expressions = vec(expression(), 1..4);
    (vec(option(), 0..2), expressions, any::<bool>())
        .prop_map(|(options, expressions, is_protected)| {
            let set = options.concat();
            let calls: Vec<_> = expressions
                .iter()
                .map(|text| match is_protected {
                    true => format!("show(pcall(function() return {text} end))"),
                    false => format!("show({text})"),
                })
                .collect();
            format!("{SHOW}\n{set}\nreturn {{{}}}", calls.join(",\n"))
        })
        .boxed()
}

/// Writes values as a text, tables sorted by their keys.
const SHOW: &str = "local function show(...)
  local out = {}
  for i = 1, select('#', ...) do
    local value = select(i, ...)
    local text = type(value)
    if text == 'table' then
      local fields = {}
      local function plain(value) return type(value) == 'table' and '{}' or tostring(value) end
      for k, v in pairs(value) do fields[#fields + 1] = plain(k) .. '=' .. plain(v) end
      table.sort(fields)
      text = '{' .. table.concat(fields, ',') .. '}'
    elseif text ~= 'function' then
      text = text .. ' ' .. tostring(value)
    end
    out[i] = text
  end
  return table.concat(out, '; ')
end";

fn expression() -> BoxedStrategy<String> {
    prop_oneof![
        3 => wild(),
        2 => structs(),
        3 => value().prop_map(|value| format!("cjson.encode({value})")),
        2 => json().prop_map(|text| format!("cjson.decode('{text}')")),
        1 => value().prop_map(|value| format!("cjson.encode(cjson.decode(cjson.encode({value})))")),
        2 => vec(value(), 0..4).prop_map(|values| format!("cmsgpack.pack({})", values.join(", "))),
        1 => vec(value(), 1..4)
            .prop_map(|values| format!("cmsgpack.unpack(cmsgpack.pack({}))", values.join(", "))),
        2 => (bytes(), select(&["unpack", "unpack_one"][..]))
            .prop_map(|(bytes, name)| format!("cmsgpack.{name}({bytes})")),
        1 => (bytes(), -1..9, -1..9)
            .prop_map(|(bytes, limit, offset)| format!("cmsgpack.unpack_limit({bytes}, {limit}, {offset})")),
    ]
    .boxed()
}

/// Sets an option of `cjson`, which later scripts on the server see, too.
fn option() -> impl Strategy<Value = String> {
    let calls = [
        "cjson.encode_sparse_array(true, 2, 3)",
        "cjson.encode_sparse_array(false, 0)",
        "cjson.encode_max_depth(2)",
        "cjson.decode_max_depth(3)",
        "cjson.encode_number_precision(3)",
        "cjson.encode_invalid_numbers('null')",
        "cjson.encode_invalid_numbers(true)",
        "cjson.decode_invalid_numbers('off')",
        "local cjson = cjson.new()",
    ];
    select(calls.to_vec()).prop_map(|call| format!("{call}\n"))
}

/// Calls a function with any arguments.
fn wild() -> impl Strategy<Value = String> {
    (select(FUNCTIONS), vec(value(), 4), prop_oneof![4 => Just(None), 1 => (0..4usize).prop_map(Some)])
        .prop_map(|((name, usual), values, count)| {
            format!("{name}({})", values[..count.unwrap_or(usual)].join(", "))
        })
}

/// Packs values, or unpacks them again with the same or another format.
fn structs() -> impl Strategy<Value = String> {
    let formats = vec(select(ITEMS), 0..6);
    (formats.clone(), formats, 0..4, -1..12).prop_map(|(one, other, kind, position)| {
        let format: String = one.iter().map(|(letters, _)| *letters).collect();
        let other: String = other.iter().map(|(letters, _)| *letters).collect();
        let values: String = one
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(_, value)| format!(", {value}"))
            .collect();
        match kind {
            0 => format!("struct.pack('{format}'{values})"),
            1 => format!("struct.unpack('{format}', struct.pack('{format}'{values}))"),
            2 => format!("struct.unpack('{other}', struct.pack('{format}'{values}), {position})"),
            _ => format!("struct.size('{format}')"),
        }
    })
}

/// Draws a value, which may be a nested table.
fn value() -> BoxedStrategy<String> {
    let keys = select(
        &[
            "a", "b", "key", "[1]", "[2]", "[3]", "[5]", "[12]", "[0]", "[-1]", "[1.5]", "[2^31]", "[2^40]",
            "[true]", "[1/0]", "['a/']",
        ][..],
    );
    select(VALUES)
        .prop_map(str::to_owned)
        .prop_recursive(3, 12, 4, move |inner| {
            let list = vec(inner.clone(), 0..4).prop_map(|values| format!("{{{}}}", values.join(", ")));
            let fields = vec((keys.clone(), inner), 0..4).prop_map(|fields| {
                let fields: Vec<_> = fields.iter().map(|(key, value)| format!("{key} = {value}")).collect();
                format!("{{{}}}", fields.join(", "))
            });
            prop_oneof![list, fields]
        })
        .boxed()
}

fn json() -> impl Strategy<Value = String> {
    vec(select(JSON), 1..6).prop_map(|pieces| pieces.concat())
}

/// Draws a text of few bytes, most of which begin a value of MessagePack.
fn bytes() -> impl Strategy<Value = String> {
    let first = prop_oneof![
        2 => 0..4u8,
        1 => 0x80..0x84u8,
        1 => 0x90..0x94u8,
        1 => 0xa0..0xa4u8,
        4 => 0xc0..0xe1u8,
        1 => any::<u8>(),
    ];
    vec(first, 0..10).prop_map(|bytes| {
        let text: String = bytes.iter().map(|byte| format!("\\{byte:03}")).collect();
        format!("'{text}'")
    })
}
