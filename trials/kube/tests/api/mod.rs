//! A small API server of Kubernetes with `coordination.k8s.io/v1` Leases alone: GET, POST, PUT, and PATCH by
//! a merge (RFC 7386). As in Kubernetes, a write that names an old resourceVersion gets 409, a PUT must name
//! one, and a PATCH need not.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// The rule that an election must keep.
pub const RULE: &str = "nobody takes over a lease that another holds";

/// The Leases by name. They outlive a crash of the server, as etcd does.
pub type Leases = Arc<Mutex<BTreeMap<String, Value>>>;

type Answer = Result<Json<Value>, Response>;

/// Serves the API on port 8001.
///
/// # Errors
///
/// If the port is taken.
pub async fn serve(leases: Leases) -> std::io::Result<()> {
    let leases_path = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases";
    let read = |State(leases): State<Leases>, Path((_, name)): Path<(String, String)>| {
        ready(with(&leases, |leases| {
            leases.get(&name).cloned().map(Json).ok_or_else(|| failure(404, "NotFound"))
        }))
    };
    let create = |State(leases): State<Leases>, Path(_): Path<String>, Json(lease): Json<Value>| {
        ready(with(&leases, |leases| {
            let name = lease["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            if leases.contains_key(&name) {
                return Err(failure(409, "AlreadyExists"));
            }
            Ok(store(leases, name, lease))
        }))
    };
    let replace = |State(leases): State<Leases>,
                   Path((_, name)): Path<(String, String)>,
                   Json(lease): Json<Value>| {
        ready(with(&leases, |leases| {
            let version = &lease["metadata"]["resourceVersion"];
            let stored = leases.get(&name).ok_or_else(|| failure(404, "NotFound"))?;
            match version {
                Value::Null => Err(failure(422, "Invalid")),
                version if *version != stored["metadata"]["resourceVersion"] => Err(failure(409, "Conflict")),
                _ => Ok(store(leases, name, lease)),
            }
        }))
    };
    // The body is read as text: its type is application/merge-patch+json.
    let patch = |State(leases): State<Leases>, Path((_, name)): Path<(String, String)>, patch: String| {
        ready(with(&leases, |leases| {
            let patch: Value = serde_json::from_str(&patch).map_err(|_| failure(400, "BadRequest"))?;
            let version = &patch["metadata"]["resourceVersion"];
            let stored = leases.get(&name).ok_or_else(|| failure(404, "NotFound"))?;
            if !version.is_null() && *version != stored["metadata"]["resourceVersion"] {
                return Err(failure(409, "Conflict"));
            }
            let mut merged = stored.clone();
            merge(&mut merged, &patch);
            Ok(store(leases, name, merged))
        }))
    };
    let app = Router::new()
        .route(leases_path, post(create))
        .route(&format!("{leases_path}/{{name}}"), get(read).put(replace).patch(patch))
        .with_state(leases);
    axum::serve(tokio::net::TcpListener::bind("0.0.0.0:8001").await?, app).await
}

fn with(leases: &Leases, act: impl FnOnce(&mut BTreeMap<String, Value>) -> Answer) -> Answer {
    act(&mut leases.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Stores a Lease under a new resourceVersion.
fn store(leases: &mut BTreeMap<String, Value>, name: String, mut lease: Value) -> Json<Value> {
    let stored = leases.get(&name);
    sim::always!(RULE, stored.is_none_or(|stored| may_follow(stored, &lease)));
    let version = stored.and_then(|stored| stored["metadata"]["resourceVersion"].as_str()?.parse().ok());
    lease["metadata"]["resourceVersion"] = json!((version.unwrap_or(0_u64) + 1).to_string());
    leases.insert(name, lease.clone());
    Json(lease)
}

/// Returns true unless `next` names another holder while the one of `stored` holds the lease.
fn may_follow(stored: &Value, next: &Value) -> bool {
    let holder = |lease: &Value| lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    let is_free = holder(stored).is_empty() || !is_held(stored, Timestamp::now());
    is_free || holder(stored) == holder(next) || holder(next).is_empty()
}

/// Returns true if the time of the lease is not over.
fn is_held(lease: &Value, now: Timestamp) -> bool {
    let lease: Option<Lease> = serde_json::from_value(lease.clone()).ok();
    let end = lease.and_then(|lease| {
        let spec = lease.spec?;
        let length = SignedDuration::from_secs(spec.lease_duration_seconds?.into());
        spec.renew_time?.0.checked_add(length).ok()
    });
    end.is_some_and(|end| now < end)
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    let mut fields = target.as_object().cloned().unwrap_or_default();
    for (field, value) in patch {
        if value.is_null() {
            fields.remove(field);
        } else {
            merge(fields.entry(field.clone()).or_insert(Value::Null), value);
        }
    }
    *target = Value::Object(fields);
}

fn failure(code: u16, reason: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": reason, "reason": reason, "code": code,
    });
    (StatusCode::from_u16(code).unwrap_or_default(), Json(status)).into_response()
}
