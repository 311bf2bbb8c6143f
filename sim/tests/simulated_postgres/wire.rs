//! Messages and values at the edges of the protocol.

use std::error::Error;

use bytes::BytesMut;
use sim::clients::tokio_postgres::types::{IsNull, ToSql, Type};
use sim::servers::postgres::PostgresHost;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::protocol::{answers, message, says};
use super::{code, connect, script};

#[test]
fn a_function_call_fails_the_transaction() {
    let bytes = b"Q\0\0\0\x0aBEGIN\0F\0\0\0\x04F\0\0\0\x04";
    let (kinds, answers) = answers(bytes);
    assert!(kinds == "CZEZEZ" && answers.ends_with(b"Z\0\0\0\x05E"), "{kinds}");
    assert!(says(&answers, "0A000") && says(&answers, "25P02"));
}

#[test]
fn a_description_counts_more_parameters_than_fit_a_signed_number() {
    // 40,000 parameters of type integer.
    let types = 23_u32.to_be_bytes().repeat(40_000);
    let count = 40_000_u16.to_be_bytes();
    let parse = message(b'P', &[&b"s\0SELECT 1\0"[..], &count, types.as_slice()].concat());
    let describe = message(b'D', b"Ss\0");
    let (kinds, answers) = answers([parse, describe, message(b'S', b"")].concat());
    assert_eq!(kinds, "1tTZ");
    // The length, 160,006, and the count.
    let head = [b't', 0x00, 0x02, 0x71, 0x06, 0x9c, 0x40];
    assert!(answers.windows(head.len()).any(|window| window == head));
}

#[test]
fn a_newer_protocol_is_answered_with_the_version_of_the_server() {
    let (_, answer) = script(PostgresHost::new(), |control| async move {
        let mut stream = control.process("a").connect("db:5432").await.unwrap();
        stream.write_all(b"\0\0\0\x12\0\x03\0\x02user\0app\0\0").await.unwrap();
        let mut answer = [0; 13];
        stream.read_exact(&mut answer).await.unwrap();
        answer
    });
    // NegotiateProtocolVersion: 3.0, and no option that is unknown.
    assert_eq!(&answer, b"v\0\0\0\x0c\0\x03\0\0\0\0\0\0");
}

/// The bytes of a parameter.
#[derive(Debug)]
struct Raw(Vec<u8>);

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(
        &self,
        r#type: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(r#type, out)
    }
}

/// Returns the parameter as a text, or the code of its error.
fn text_of(r#type: &'static str, bytes: Vec<u8>) -> Result<String, String> {
    let (_, text) = script(PostgresHost::new(), move |control| async move {
        let client = connect(&control.process("a")).await;
        let row = client.query_one(&format!("SELECT ($1::{type})::text"), &[&Raw(bytes)]).await;
        row.map(|row| row.get(0)).map_err(|error| code(&error))
    });
    text
}

#[test]
fn dates_and_timestamps_beyond_their_ranges_are_refused() {
    let date = |days: i32| text_of("date", days.to_be_bytes().to_vec());
    assert_eq!(date(0), Ok("2000-01-01".to_owned()));
    assert!(date(-2_451_545).is_ok() && date(2_145_031_948).is_ok());
    assert_eq!([date(-2_451_546), date(2_145_031_949)], [(); 2].map(|()| Err("22008".to_owned())));
    assert_eq!(date(i32::MAX), Ok("infinity".to_owned()));
    for name in ["timestamp", "timestamptz"] {
        let timestamp = |micros: i64| text_of(name, micros.to_be_bytes().to_vec());
        assert!(timestamp(-211_813_488_000_000_000).is_ok() && timestamp(9_223_371_331_199_999_999).is_ok());
        let beyond = [-211_813_488_000_000_001, 9_223_371_331_200_000_000].map(timestamp);
        assert_eq!(beyond, [(); 2].map(|()| Err("22008".to_owned())), "{name}");
        assert_eq!(timestamp(i64::MIN), Ok("-infinity".to_owned()), "{name}");
    }
}
