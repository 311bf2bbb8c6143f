//! The types of columns, parameters and expressions.

/// A type of PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names of PostgreSQL")]
pub enum Type {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Text,
    Varchar,
    Bpchar,
    Name,
    Bytea,
    Json,
    Jsonb,
    Timestamptz,
    Timestamp,
    Date,
    Interval,
    Uuid,
    Oid,
    Regclass,
    Void,
    Record,
    /// A literal or a parameter whose type nothing says.
    Unknown,
    /// An array of elements of a type.
    Array(&'static Type),
}

/// The types with their object identifiers, those of their arrays, and their names.
const TYPES: &[(Type, u32, u32, &str)] = &[
    (Type::Bool, 16, 1000, "boolean"),
    (Type::Int2, 21, 1005, "smallint"),
    (Type::Int4, 23, 1007, "integer"),
    (Type::Int8, 20, 1016, "bigint"),
    (Type::Float4, 700, 1021, "real"),
    (Type::Float8, 701, 1022, "double precision"),
    (Type::Numeric, 1700, 1231, "numeric"),
    (Type::Text, 25, 1009, "text"),
    (Type::Varchar, 1043, 1015, "character varying"),
    (Type::Bpchar, 1042, 1014, "character"),
    (Type::Name, 19, 1003, "name"),
    (Type::Bytea, 17, 1001, "bytea"),
    (Type::Json, 114, 199, "json"),
    (Type::Jsonb, 3802, 3807, "jsonb"),
    (Type::Timestamptz, 1184, 1185, "timestamp with time zone"),
    (Type::Timestamp, 1114, 1115, "timestamp without time zone"),
    (Type::Date, 1082, 1182, "date"),
    (Type::Interval, 1186, 1187, "interval"),
    (Type::Uuid, 2950, 2951, "uuid"),
    (Type::Oid, 26, 1028, "oid"),
    (Type::Regclass, 2205, 2210, "regclass"),
    (Type::Void, 2278, 0, "void"),
    (Type::Record, 2249, 2287, "record"),
    (Type::Unknown, 705, 0, "unknown"),
];

/// Other names of the types.
const ALIASES: &[(&str, Type)] = &[
    ("bool", Type::Bool),
    ("int2", Type::Int2),
    ("int", Type::Int4),
    ("int4", Type::Int4),
    ("int8", Type::Int8),
    ("float4", Type::Float4),
    ("float8", Type::Float8),
    ("float", Type::Float8),
    ("decimal", Type::Numeric),
    ("dec", Type::Numeric),
    ("varchar", Type::Varchar),
    ("char varying", Type::Varchar),
    ("char", Type::Bpchar),
    ("bpchar", Type::Bpchar),
    ("timestamptz", Type::Timestamptz),
    ("timestamp", Type::Timestamp),
];

impl Type {
    /// Returns the object identifier, which the protocol names types by.
    #[must_use]
    pub fn oid(self) -> u32 {
        let of = |wanted: Self| TYPES.iter().find(|(r#type, ..)| *r#type == wanted);
        match self {
            Self::Array(element) => of(*element).map_or(0, |(_, _, array, _)| *array),
            _ => of(self).map_or(0, |(_, oid, ..)| *oid),
        }
    }

    /// Returns the type of an object identifier; `Unknown` for 0 and 705, `None` for a type that the
    /// simulated server lacks.
    #[must_use]
    pub fn from_oid(oid: u32) -> Option<Self> {
        let unknown = (oid == 0).then_some(Self::Unknown);
        unknown.or_else(|| {
            TYPES.iter().find_map(|(r#type, of, array, _)| match oid {
                _ if *of == oid => Some(*r#type),
                _ if *array == oid => Some(Self::Array(r#type)),
                _ => None,
            })
        })
    }

    /// Returns the type of a name, such as `bigint`, `int8` or `text[]`, in lower case and without a
    /// modifier.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim().trim_start_matches("pg_catalog.");
        if let Some(element) = name.strip_suffix("[]") {
            return Self::from_name(element)?.array();
        }
        let listed = TYPES.iter().find(|(_, _, _, of)| *of == name).map(|(r#type, ..)| *r#type);
        listed.or_else(|| ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, r#type)| *r#type))
    }

    /// Returns the type of arrays of this type; `None` if it has none.
    #[must_use]
    pub fn array(self) -> Option<Self> {
        TYPES
            .iter()
            .find(|(r#type, _, array, _)| *r#type == self && *array != 0)
            .map(|(t, ..)| Self::Array(t))
    }

    /// Returns the name as `format_type` prints it.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Array(element) => format!("{}[]", element.name()),
            _ => TYPES.iter().find(|(t, ..)| *t == self).map_or("?", |(_, _, _, name)| *name).to_owned(),
        }
    }

    /// Returns the size of a value in bytes as the protocol describes it; -1 if it varies.
    #[must_use]
    pub fn size(self) -> i16 {
        match self {
            Self::Bool => 1,
            Self::Int2 => 2,
            Self::Int4 | Self::Float4 | Self::Date | Self::Oid | Self::Regclass | Self::Void => 4,
            Self::Int8 | Self::Float8 | Self::Timestamptz | Self::Timestamp => 8,
            Self::Interval | Self::Uuid => 16,
            Self::Name => 64,
            Self::Unknown => -2,
            _ => -1,
        }
    }

    pub(crate) fn is_integer(self) -> bool {
        matches!(self, Self::Int2 | Self::Int4 | Self::Int8)
    }

    pub(crate) fn is_number(self) -> bool {
        self.is_integer() || matches!(self, Self::Numeric | Self::Float4 | Self::Float8)
    }

    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Varchar | Self::Bpchar | Self::Name)
    }

    /// Returns the order in which numbers are converted to each other.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::Int2 => 1,
            Self::Int4 => 2,
            Self::Int8 => 3,
            Self::Numeric => 4,
            Self::Float4 => 5,
            Self::Float8 => 6,
            _ => 0,
        }
    }
}
