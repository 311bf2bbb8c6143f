//! Columns and constraints of `CREATE TABLE` and `ALTER TABLE`.

use std::collections::BTreeSet;
use std::sync::Arc;

use sqlparser::ast;
use sqlparser::ast::{ColumnOption, GeneratedAs, SequenceOptions, TableConstraint};

use super::ddl::constraint_name;
use super::indexes::{free_name, index_columns, unique_index};
use crate::error::SqlError;
use crate::exec::run::Run;
use crate::plan::binder::{ident, missing_relation, name_parts};
use crate::plan::literals::type_of;
use crate::storage::lock::{Mode, Target};
use crate::storage::sequence::Sequence;
use crate::storage::stop::Stop;
use crate::storage::table::{
    Check, ColumnDef, ForeignKey, Identity, Modified, Modifier, OnDelete, TableDef, TableId,
};
use crate::storage::transaction::Undo;
use crate::value::Value;
use crate::value::types::Type;

/// A table that is being defined.
pub(super) struct Definition {
    pub(super) def: TableDef,
    /// Foreign keys, which are resolved when all columns are known.
    pub(super) keys: Vec<ast::ForeignKeyConstraint>,
    /// The names of all relations of the schema, and those of this definition.
    pub(super) names: BTreeSet<String>,
}

/// Refuses the clauses of `CREATE TABLE` that are not known.
pub(super) fn refuse_options(create: &ast::CreateTable) -> Result<(), SqlError> {
    let what = if create.temporary || create.unlogged || create.or_replace {
        "temporary and unlogged tables"
    } else if create.query.is_some() {
        "CREATE TABLE AS"
    } else if create.like.is_some() || create.inherits.is_some() {
        "LIKE and INHERITS"
    } else if create.partition_by.is_some() || create.partition_of.is_some() {
        "partitions"
    } else {
        return Ok(());
    };
    Err(SqlError::unknown(what))
}

impl Run<'_> {
    /// Begins the definition of a table, or of more of it.
    pub(super) fn define(&self, def: TableDef) -> Definition {
        let mut names = self.store.relation_names(&self.viewer(), &def.schema);
        names.insert(def.name.clone());
        Definition { def, keys: Vec::new(), names }
    }

    pub(super) fn define_column(
        &mut self,
        table: TableId,
        definition: &mut Definition,
        column: &ast::ColumnDef,
    ) -> Result<(), Stop> {
        let name = ident(&column.name);
        let def = &mut definition.def;
        if def.column(&name).is_some() {
            let text = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new("42701", text).into());
        }
        let serial = match column.data_type.to_string().to_lowercase().as_str() {
            "smallserial" | "serial2" => Some(Type::Int2),
            "serial" | "serial4" => Some(Type::Int4),
            "bigserial" | "serial8" => Some(Type::Int8),
            _ => None,
        };
        let r#type = match serial {
            Some(r#type) => Modified { r#type, modifier: Modifier::None },
            None => type_of(&column.data_type)?,
        };
        let mut made = ColumnDef {
            name: name.clone(),
            r#type,
            not_null: serial.is_some(),
            default: None,
            identity: None,
            sequence: None,
            missing: Value::Null,
        };
        let sequence = free_name(&definition.names, &format!("{}_{name}_seq", def.name));
        let schema = def.schema.clone();
        if serial.is_some() {
            let id = self.add_sequence(schema.clone(), sequence.clone(), r#type.r#type, &[], Some(table))?;
            made.sequence = Some(id);
            definition.names.insert(sequence.clone());
        }
        let place = def.columns.len();
        def.columns.push(made);
        for option in &column.options {
            let given = option.name.as_ref();
            let def = &mut definition.def;
            match &option.option {
                ColumnOption::Generated { generated_as, sequence_options, generation_expr: None, .. } => {
                    let identity = match generated_as {
                        GeneratedAs::Always => Identity::Always,
                        GeneratedAs::ByDefault => Identity::ByDefault,
                        GeneratedAs::ExpStored => return Err(SqlError::unknown("generated columns").into()),
                    };
                    let options = sequence_options.as_deref().unwrap_or_default();
                    let (schema, sequence) = (schema.clone(), sequence.clone());
                    definition.names.insert(sequence.clone());
                    let id = self.add_sequence(schema, sequence, r#type.r#type, options, Some(table))?;
                    if let Some(column) = def.columns.get_mut(place) {
                        (column.identity, column.sequence, column.not_null) =
                            (Some(identity), Some(id), true);
                    }
                }
                option => column_option(definition, place, given, option)?,
            }
        }
        Ok(())
    }

    pub(super) fn define_constraint(
        &mut self,
        _table: TableId,
        definition: &mut Definition,
        constraint: &TableConstraint,
    ) -> Result<(), Stop> {
        let (def, names) = (&mut definition.def, &mut definition.names);
        match constraint {
            TableConstraint::PrimaryKey(key) if key.characteristics.is_some() || !key.include.is_empty() => {
                return Err(SqlError::unknown("DEFERRABLE and INCLUDE of a primary key").into());
            }
            TableConstraint::Unique(key)
                if key.characteristics.is_some()
                    || !key.include.is_empty()
                    || key.nulls_distinct != ast::NullsDistinctOption::None =>
            {
                return Err(SqlError::unknown("DEFERRABLE, INCLUDE and NULLS of UNIQUE").into());
            }
            TableConstraint::PrimaryKey(key) => {
                let columns = index_columns(def, &key.columns)?;
                primary_key(def, names, key.name.as_ref(), columns)?;
            }
            TableConstraint::Unique(key) => {
                let columns = index_columns(def, &key.columns)?;
                let index = unique_index(def, names, key.name.as_ref(), columns, false)?;
                def.indexes.push(index);
            }
            TableConstraint::Check(check) => add_check(def, None, check),
            TableConstraint::ForeignKey(key) => definition.keys.push(key.clone()),
            other => return Err(SqlError::unknown(format_args!("the constraint {other}")).into()),
        }
        Ok(())
    }

    /// Resolves the foreign keys of a definition.
    pub(super) fn finish_definition(
        &mut self,
        table: TableId,
        definition: &mut Definition,
    ) -> Result<(), Stop> {
        for key in std::mem::take(&mut definition.keys) {
            let made = self.foreign_key(table, &definition.def, &key)?;
            definition.def.foreign.push(made);
        }
        Ok(())
    }

    fn foreign_key(
        &mut self,
        table: TableId,
        def: &TableDef,
        key: &ast::ForeignKeyConstraint,
    ) -> Result<ForeignKey, Stop> {
        let parts = name_parts(&key.foreign_table)?;
        let is_self = parts.last() == Some(&def.name) && parts.len() == 1;
        let (parent, parent_def) = if is_self {
            (table, def.clone())
        } else {
            let found = self.store.table_named(&self.viewer(), &parts);
            let (id, found) = found.ok_or_else(|| missing_relation(&parts))?;
            (id, (*found.def).clone())
        };
        if !is_self {
            self.lock(Target::Table(parent), Mode::ShareRowExclusive)?;
        }
        let place = |def: &TableDef, name: &ast::Ident| {
            let name = ident(name);
            let text = format!("column \"{name}\" referenced in foreign key constraint does not exist");
            def.column(&name).ok_or_else(|| SqlError::new("42703", text))
        };
        let columns = key.columns.iter().map(|name| place(def, name)).collect::<Result<Vec<_>, _>>()?;
        let parent_columns = if key.referred_columns.is_empty() {
            let none = || {
                let text = format!("there is no primary key for referenced table \"{}\"", parent_def.name);
                SqlError::new("42704", text)
            };
            parent_def.primary().ok_or_else(none)?.columns.clone()
        } else {
            let places = key.referred_columns.iter().map(|name| place(&parent_def, name));
            places.collect::<Result<Vec<_>, _>>()?
        };
        if columns.len() != parent_columns.len() {
            let text = "number of referencing and referenced columns for foreign key disagree";
            return Err(SqlError::new("42830", text).into());
        }
        let is_unique = parent_def.indexes.iter().any(|index| {
            let mut wanted = parent_columns.clone();
            let mut own = index.columns.clone();
            wanted.sort_unstable();
            own.sort_unstable();
            index.is_unique && index.predicate.is_none() && own == wanted
        });
        if !is_unique {
            let name = &parent_def.name;
            let text =
                format!("there is no unique constraint matching given keys for referenced table \"{name}\"");
            return Err(SqlError::new("42830", text).into());
        }
        let names = columns.iter().filter_map(|place| def.columns.get(*place)).map(|c| c.name.as_str());
        let names: Vec<_> = names.collect();
        let name = constraint_name(key.name.as_ref(), &[&def.name, &names.join("_"), "fkey"]);
        let on_delete = match key.on_delete {
            None | Some(ast::ReferentialAction::NoAction | ast::ReferentialAction::Restrict) => {
                OnDelete::Refuse
            }
            Some(ast::ReferentialAction::Cascade) => OnDelete::Cascade,
            Some(ast::ReferentialAction::SetNull) => OnDelete::SetNull,
            Some(ast::ReferentialAction::SetDefault) => {
                return Err(SqlError::unknown("ON DELETE SET DEFAULT").into());
            }
        };
        let is_plain_update = matches!(
            key.on_update,
            None | Some(ast::ReferentialAction::NoAction | ast::ReferentialAction::Restrict)
        );
        if !is_plain_update || key.characteristics.is_some() || key.match_kind.is_some() {
            return Err(SqlError::unknown("ON UPDATE, MATCH and DEFERRABLE of a foreign key").into());
        }
        Ok(ForeignKey { name, columns, parent, parent_columns, on_delete })
    }

    /// Creates a sequence; returns its object identifier.
    pub(super) fn add_sequence(
        &mut self,
        schema: String,
        name: String,
        r#type: Type,
        options: &[SequenceOptions],
        owner: Option<TableId>,
    ) -> Result<TableId, Stop> {
        let limit = match r#type {
            Type::Int2 => i64::from(i16::MAX),
            Type::Int4 => i64::from(i32::MAX),
            _ => i64::MAX,
        };
        let number = |expr: &ast::Expr| {
            let text = expr.to_string();
            text.parse::<i64>().map_err(|_| SqlError::unknown(format_args!("{text} in a sequence")))
        };
        let (mut increment, mut min, mut max, mut start, mut is_cycle) = (1, None, None, None, false);
        for option in options {
            match option {
                SequenceOptions::IncrementBy(by, _) => increment = number(by)?,
                SequenceOptions::MinValue(Some(value)) => min = Some(number(value)?),
                SequenceOptions::MaxValue(Some(value)) => max = Some(number(value)?),
                SequenceOptions::StartWith(value, _) => start = Some(number(value)?),
                SequenceOptions::Cycle(no) => is_cycle = !no,
                SequenceOptions::Cache(value) if number(value)? == 1 => {}
                SequenceOptions::MinValue(None) | SequenceOptions::MaxValue(None) => {}
                other => return Err(SqlError::unknown(format_args!("{other} of a sequence")).into()),
            }
        }
        if increment == 0 {
            return Err(SqlError::new("22023", "INCREMENT must not be zero").into());
        }
        let min = min.unwrap_or(if increment > 0 { 1 } else { -limit - 1 });
        let max = max.unwrap_or(if increment > 0 { limit } else { -1 });
        let start = start.unwrap_or(if increment > 0 { min } else { max });
        let id = self.store.next_oid();
        let sequence = Sequence {
            schema,
            name,
            increment,
            min,
            max,
            start,
            is_cycle,
            last: start,
            is_called: false,
            ahead: 0,
            created_by: Some(self.actor.snapshot.xid),
            dropped_by: None,
            reset_by: None,
            owner,
        };
        self.store.sequences.insert(id, sequence);
        self.store.push_undo(self.session.id, Undo::CreateSequence(id));
        Ok(id)
    }
}

fn primary_key(
    def: &mut TableDef,
    names: &mut BTreeSet<String>,
    given: Option<&ast::Ident>,
    columns: Vec<usize>,
) -> Result<(), SqlError> {
    if def.primary().is_some() {
        let text = format!("multiple primary keys for table \"{}\" are not allowed", def.name);
        return Err(SqlError::new("42P16", text));
    }
    for place in &columns {
        if let Some(column) = def.columns.get_mut(*place) {
            column.not_null = true;
        }
    }
    let index = unique_index(def, names, given, columns, true)?;
    def.indexes.push(index);
    Ok(())
}

fn add_check(def: &mut TableDef, column: Option<&str>, check: &ast::CheckConstraint) {
    let name = match column {
        Some(column) => constraint_name(check.name.as_ref(), &[&def.name, column, "check"]),
        None => constraint_name(check.name.as_ref(), &[&def.name, &of_columns(def, check), "check"]),
    };
    let name = name.replace("__", "_");
    let mut unique = name.clone();
    let mut number = 0;
    while check.name.is_none() && def.checks.iter().any(|other| other.name == unique) {
        number += 1;
        unique = format!("{name}{number}");
    }
    def.checks.push(Check { name: unique, condition: Arc::new((*check.expr).clone()) });
}

/// Returns the column that a check reads, if it is only one: it becomes part of the name.
fn of_columns(def: &TableDef, check: &ast::CheckConstraint) -> String {
    let text = check.expr.to_string().to_lowercase();
    let words: Vec<_> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let used = def.columns.iter().filter(|column| words.contains(&column.name.as_str()));
    let used: Vec<_> = used.map(|column| column.name.clone()).collect();
    if let [single] = &used[..] { single.clone() } else { String::new() }
}

fn column_option(
    definition: &mut Definition,
    place: usize,
    given: Option<&ast::Ident>,
    option: &ColumnOption,
) -> Result<(), SqlError> {
    let (def, names) = (&mut definition.def, &mut definition.names);
    let name = def.columns.get(place).map(|column| column.name.clone()).unwrap_or_default();
    match option {
        ColumnOption::Null => {}
        ColumnOption::NotNull => {
            if let Some(column) = def.columns.get_mut(place) {
                column.not_null = true;
            }
        }
        ColumnOption::Default(expr) => {
            if let Some(column) = def.columns.get_mut(place) {
                column.default = Some(Arc::new(expr.clone()));
            }
        }
        ColumnOption::PrimaryKey(key) if key.characteristics.is_none() => {
            primary_key(def, names, given, vec![place])?;
        }
        ColumnOption::Unique(key)
            if key.characteristics.is_none() && key.nulls_distinct == ast::NullsDistinctOption::None =>
        {
            let index = unique_index(def, names, given, vec![place], false)?;
            def.indexes.push(index);
        }
        ColumnOption::Check(check) => {
            let named = ast::CheckConstraint { name: check.name.clone().or(given.cloned()), ..check.clone() };
            add_check(def, Some(&name), &named);
        }
        ColumnOption::ForeignKey(key) => {
            let columns = vec![ast::Ident::with_quote('"', name)];
            let name = key.name.clone().or(given.cloned());
            definition.keys.push(ast::ForeignKeyConstraint { columns, name, ..key.clone() });
        }
        ColumnOption::Collation(name) if name.to_string().trim_matches('"') == "C" => {}
        other => return Err(SqlError::unknown(format_args!("{other} of a column"))),
    }
    Ok(())
}
