//! Run it: `cargo run --all-features --example without_lock -- postgresql://USER@HOST/DB`.
//!
//! Three changes of a database that need no lock and no token, each tried by eight machines at once: an
//! invoice under a unique key of customer and month, a stock that a conditional update keeps from falling
//! below zero, and the assignment of a case with its row of audit in the same transaction.
#![allow(clippy::disallowed_methods, reason = "a live program")]

use std::future::Future;

use tokio_postgres::{Client, Error, NoTls};

/// Each run has new tables.
const TABLES: &str = "DROP TABLE IF EXISTS invoices_of_month, stock, cases, case_audit;
CREATE TABLE invoices_of_month (customer bigint, month date, PRIMARY KEY (customer, month));
CREATE TABLE stock (id bigint PRIMARY KEY, pieces bigint NOT NULL);
INSERT INTO stock VALUES (7, 3);
CREATE TABLE cases (id bigint PRIMARY KEY, status text NOT NULL, assigned_to int);
INSERT INTO cases VALUES (7, 'READY');
CREATE TABLE case_audit (case_id bigint NOT NULL, assigned_to int NOT NULL);";

const MACHINES: usize = 8;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url =
        std::env::args().nth(1).unwrap_or_else(|| "postgresql://postgres@127.0.0.1/postgres".to_owned());
    let client = connect(&url).await?;
    client.batch_execute(TABLES).await?;
    let count = async |query: &str| Ok::<i64, Error>(client.query_one(query, &[]).await?.get(0));

    println!("invoice: made by {} of {MACHINES} machines", at_once(&url, make_invoice).await?);
    println!("invoice, a late machine makes it: {}", make_invoice(connect(&url).await?).await?);
    println!("invoices: {}", count("SELECT count(*) FROM invoices_of_month").await?);

    println!("pieces: sold to {} of {MACHINES} buyers", at_once(&url, sell_piece).await?);
    println!("pieces left: {}", count("SELECT pieces FROM stock").await?);

    println!("case: assigned to {} of {MACHINES} clerks", at_once(&url, assign_case).await?);
    println!("case, a late clerk gets it: {}", assign_case(connect(&url).await?).await?);
    let audited = "SELECT count(*) FROM case_audit a JOIN cases c ON (c.id, c.assigned_to) = (a.case_id, \
                   a.assigned_to)";
    println!("rows of audit, by the clerk who has it: {}", count(audited).await?);
    Ok(())
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Tries a change on each machine at once, with a connection of its own; returns how many made it.
async fn at_once<F>(url: &str, change: impl Fn(Client) -> F) -> Result<usize, Failure>
where
    F: Future<Output = Result<bool, Error>> + Send + 'static,
{
    let mut clients = Vec::new();
    for _ in 0..MACHINES {
        clients.push(connect(url).await?);
    }
    let machines: Vec<_> = clients.into_iter().map(|client| tokio::spawn(change(client))).collect();
    let mut made = 0;
    for machine in machines {
        made += usize::from(machine.await??);
    }
    Ok(made)
}

/// Makes the invoice of a customer and a month; returns false if it exists.
///
/// Take a unique key if whatever may exist only once has a name that every machine knows beforehand. A
/// machine that comes at the same time waits for the transaction of the first one, and then finds its row.
async fn make_invoice(client: Client) -> Result<bool, Error> {
    let insert = "INSERT INTO invoices_of_month VALUES (7, '2026-07-01') ON CONFLICT DO NOTHING";
    Ok(client.execute(insert, &[]).await? > 0)
}

/// Sells a piece; returns false if none is left.
async fn sell_piece(client: Client) -> Result<bool, Error> {
    let sell = "UPDATE stock SET pieces = pieces - 1 WHERE id = 7 AND pieces > 0";
    Ok(client.execute(sell, &[]).await? > 0)
}

/// Assigns the case to the clerk of this session, with a row of audit; returns false if another has it.
///
/// The condition names the state from which the transition may start, so that it happens once. Both rows are
/// there, or neither.
async fn assign_case(mut client: Client) -> Result<bool, Error> {
    let transaction = client.transaction().await?;
    let assign = "UPDATE cases SET status = 'ASSIGNED', assigned_to = pg_backend_pid() WHERE id = 7 AND \
                  status = 'READY'";
    if transaction.execute(assign, &[]).await? == 0 {
        return Ok(false);
    }
    transaction.execute("INSERT INTO case_audit VALUES (7, pg_backend_pid())", &[]).await?;
    transaction.commit().await?;
    Ok(true)
}
