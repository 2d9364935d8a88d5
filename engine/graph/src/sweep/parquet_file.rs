//! The table of a sweep as a Parquet file: the columns of `sweep.csv`, figures as integers or doubles where all of them are.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::table::Table;
use crate::Figure;

/// A column with its values, by point.
struct Column<'a> {
    name: &'a str,
    values: Values,
}

enum Values {
    Integers(Vec<Option<i64>>),
    Doubles(Vec<Option<f64>>),
    Texts(Vec<Option<String>>),
}

/// The file's bytes.
pub(crate) fn write(table: &Table<'_>) -> Result<Vec<u8>> {
    let columns = columns(table);
    let fields = columns.iter().map(|column| column.field().map(Arc::new)).collect::<Result<_>>()?;
    let schema = Arc::new(Type::group_type_builder("sweep").with_fields(fields).build()?);
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(WriterProperties::builder().build()))?;
    let mut group = writer.next_row_group()?;
    columns.iter().try_for_each(|column| column.write(&mut group))?;
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

fn columns<'a>(table: &'a Table<'a>) -> Vec<Column<'a>> {
    let texts = |name: &'a str, values: Vec<Option<String>>| Column { name, values: Values::Texts(values) };
    let mut columns: Vec<Column<'a>> = Vec::new();
    for axis in table.sweep.axes.keys() {
        columns.push(texts(axis, table.rows.iter().map(|row| row.names.get(axis).cloned()).collect()));
    }
    columns.push(texts("result", table.rows.iter().map(|row| Some(row.result().to_owned())).collect()));
    for name in &table.figures {
        let figures: Vec<Option<&Figure>> = table.rows.iter().map(|row| row.figure(name)).collect();
        columns.push(Column { name, values: Values::of(&figures) });
    }
    let messages = table.rows.iter().map(|row| row.record.why_not().map(|message| message.to_string()));
    columns.push(texts("message", messages.collect()));
    columns
}

impl Values {
    fn of(figures: &[Option<&Figure>]) -> Values {
        let all = |is: fn(&Figure) -> bool| figures.iter().flatten().all(|figure| is(figure));
        if all(|figure| matches!(figure, Figure::Integer(_))) {
            let integer = |figure: &Option<&Figure>| if let Some(Figure::Integer(value)) = figure { Some(*value) } else { None };
            Values::Integers(figures.iter().map(integer).collect())
        } else if all(|figure| figure.number().is_some()) {
            Values::Doubles(figures.iter().map(|figure| figure.and_then(Figure::number)).collect())
        } else {
            Values::Texts(figures.iter().map(|figure| figure.map(Figure::to_string)).collect())
        }
    }
}

impl Column<'_> {
    fn field(&self) -> Result<Type> {
        let (physical, logical) = match self.values {
            Values::Integers(_) => (PhysicalType::INT64, None),
            Values::Doubles(_) => (PhysicalType::DOUBLE, None),
            Values::Texts(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let builder = Type::primitive_type_builder(self.name, physical).with_repetition(Repetition::OPTIONAL);
        builder.with_logical_type(logical).build()
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>) -> Result<()> {
        let Some(mut column) = group.next_column()? else { return Ok(()) };
        match &self.values {
            Values::Integers(values) => {
                let (levels, values) = levels(values, |value| *value);
                column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
            }
            Values::Doubles(values) => {
                let (levels, values) = levels(values, |value| *value);
                column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
            }
            Values::Texts(values) => {
                let (levels, values) = levels(values, |text| ByteArray::from(text.as_str()));
                column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
            }
        }
        column.close()
    }
}

/// Whether each value is there, and those that are.
fn levels<T, R>(values: &[Option<T>], convert: impl Fn(&T) -> R) -> (Vec<i16>, Vec<R>) {
    (values.iter().map(|value| i16::from(value.is_some())).collect(), values.iter().flatten().map(convert).collect())
}
