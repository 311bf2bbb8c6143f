//! Keys, ranges, transactions and compaction of the simulated etcd, through the real client.

use super::support::{in_cluster, refusal};
use etcd_client::{
    Client, CompactionOptions, Compare, CompareOp, DeleteOptions, GetOptions, KeyValue, PutOptions,
    SortOrder, SortTarget, Txn, TxnOp, TxnOpResponse,
};

/// Puts `c`, `a`, `b`, `a` again: revisions 2 to 5.
async fn filled(client: &mut Client) {
    for (key, value) in [("c", "3"), ("a", "9"), ("b", "1"), ("a", "2")] {
        client.put(key, value, None).await.unwrap();
    }
}

/// Formats a key as `key=value create/mod/version`: create revision, modification revision, version.
fn text(kv: &KeyValue) -> String {
    let (key, value) = (kv.key_str().unwrap(), kv.value_str().unwrap());
    format!("{key}={value} {}/{}/{}", kv.create_revision(), kv.mod_revision(), kv.version())
}

fn keys(kvs: &[KeyValue]) -> String {
    kvs.iter().map(|kv| kv.key_str().unwrap()).collect()
}

#[test]
fn a_range_has_revisions_versions_and_a_header() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(1).await;
        filled(&mut client).await;
        let got = client.get("a", None).await.unwrap();
        assert_eq!(text(&got.kvs()[0]), "a=2 3/5/2");
        assert_eq!((got.count(), got.more()), (1, false));
        let header = got.header().unwrap();
        assert_eq!((header.revision(), header.raft_term()), (5, 2));
        let other = etcd.client(2).await.get("a", None).await.unwrap();
        assert_eq!(other.header().unwrap().cluster_id(), header.cluster_id());
        assert_ne!(other.header().unwrap().member_id(), header.member_id());
        let past = client.get("a", Some(GetOptions::new().with_revision(3))).await.unwrap();
        assert_eq!(text(&past.kvs()[0]), "a=9 3/3/1");
        assert_eq!(past.header().unwrap().revision(), 5);
    });
}

#[test]
fn a_range_is_sorted_filtered_and_limited_as_requested() {
    let all = || GetOptions::new().with_all_keys();
    let order = |target, order| all().with_sort(target, order);
    let cases: Vec<(GetOptions, &str, i64, bool)> = vec![
        (all(), "abc", 3, false),
        (all().with_limit(2), "ab", 3, true),
        (all().with_limit(3), "abc", 3, false),
        (order(SortTarget::Key, SortOrder::Descend), "cba", 3, false),
        (order(SortTarget::Create, SortOrder::Ascend), "cab", 3, false),
        (order(SortTarget::Create, SortOrder::Descend).with_limit(1), "b", 3, true),
        (order(SortTarget::Mod, SortOrder::Descend), "abc", 3, false),
        (order(SortTarget::Version, SortOrder::Descend).with_limit(1), "a", 3, true),
        (order(SortTarget::Value, SortOrder::Ascend), "bac", 3, false),
        (order(SortTarget::Value, SortOrder::None), "bac", 3, false),
        // Without an order etcd applies the limit first, reads one key more (a and b), and then sorts.
        (order(SortTarget::Create, SortOrder::None).with_limit(1), "a", 3, true),
        (all().with_min_create_revision(3), "ab", 3, false),
        (all().with_max_create_revision(2), "c", 3, false),
        (all().with_min_mod_revision(5), "a", 3, false),
        (all().with_max_mod_revision(4).with_limit(1), "b", 3, true),
        (all().with_count_only(), "", 3, false),
        (all().with_revision(3), "ac", 2, false),
        (GetOptions::new().with_range("c"), "ab", 2, false),
        (GetOptions::new().with_prefix(), "a", 1, false),
        (GetOptions::new().with_range("A"), "", 0, false),
    ];
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        filled(&mut client).await;
        for (number, (options, want, count, more)) in cases.into_iter().enumerate() {
            let got = client.get("a", Some(options)).await.unwrap();
            assert_eq!(
                (keys(got.kvs()).as_str(), got.count(), got.more()),
                (want, count, more),
                "case {number}"
            );
        }
        let got = client.get("a", Some(GetOptions::new().with_keys_only())).await.unwrap();
        assert_eq!(text(&got.kvs()[0]), "a= 3/5/2");
    });
}

#[test]
fn a_put_can_keep_the_former_value_or_lease() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        filled(&mut client).await;
        let lease = client.lease_grant(60, None).await.unwrap().id();
        let put =
            client.put("a", "new", Some(PutOptions::new().with_prev_key().with_lease(lease))).await.unwrap();
        assert_eq!(text(put.prev_key().unwrap()), "a=2 3/5/2");
        assert_eq!(put.header().unwrap().revision(), 6);
        client.put("a", "", Some(PutOptions::new().with_ignore_value().with_lease(0))).await.unwrap();
        let kept = client.get("a", None).await.unwrap();
        assert_eq!((text(&kept.kvs()[0]).as_str(), kept.kvs()[0].lease()), ("a=new 3/7/4", 0));
        client.put("a", "x", Some(PutOptions::new().with_lease(lease))).await.unwrap();
        client.put("a", "y", Some(PutOptions::new().with_ignore_lease())).await.unwrap();
        assert_eq!(client.get("a", None).await.unwrap().kvs()[0].lease(), lease);
    });
}

#[test]
fn a_deleted_key_starts_again_at_version_one() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        filled(&mut client).await;
        let deleted =
            client.delete("a", Some(DeleteOptions::new().with_range("c").with_prev_key())).await.unwrap();
        assert_eq!((deleted.deleted(), keys(deleted.prev_kvs())), (2, "ab".to_owned()));
        assert_eq!(deleted.header().unwrap().revision(), 6);
        let nothing = client.delete("a", None).await.unwrap();
        assert_eq!((nothing.deleted(), nothing.header().unwrap().revision()), (0, 6));
        client.put("a", "again", None).await.unwrap();
        assert_eq!(text(&client.get("a", None).await.unwrap().kvs()[0]), "a=again 7/7/1");
    });
}

#[test]
fn refusals_have_the_codes_and_texts_of_etcd() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        filled(&mut client).await;
        let empty = "InvalidArgument: etcdserver: key is not provided";
        assert_eq!(refusal(client.get("", None).await), empty);
        assert_eq!(refusal(client.put("", "", None).await), empty);
        assert_eq!(refusal(client.delete("", None).await), empty);
        let put = |options: PutOptions| (options, "x");
        let cases = [
            (put(PutOptions::new().with_ignore_value()), "InvalidArgument: etcdserver: value is provided"),
            (
                put(PutOptions::new().with_ignore_lease().with_lease(7)),
                "InvalidArgument: etcdserver: lease is provided",
            ),
            (put(PutOptions::new().with_ignore_lease()), "InvalidArgument: etcdserver: key not found"),
            (put(PutOptions::new().with_lease(7)), "NotFound: etcdserver: requested lease not found"),
            // If key and lease are both missing, the error names the lease.
            (
                (PutOptions::new().with_ignore_value().with_lease(7), ""),
                "NotFound: etcdserver: requested lease not found",
            ),
        ];
        for ((options, value), want) in cases {
            assert_eq!(refusal(client.put("absent", value, Some(options)).await), want);
        }
        let future = client.get("a", Some(GetOptions::new().with_revision(6))).await;
        assert_eq!(refusal(future), "OutOfRange: etcdserver: mvcc: required revision is a future revision");
        assert_eq!(etcd.cluster.revision(), 5, "a refused request changes nothing");
    });
}

#[test]
fn a_transaction_compares_every_target() {
    use CompareOp::{Equal, Greater, Less, NotEqual};
    let cases = [
        (Compare::version("a", Equal, 2), true),
        (Compare::version("a", Greater, 2), false),
        (Compare::version("absent", Equal, 0), true),
        (Compare::create_revision("a", Equal, 3), true),
        (Compare::create_revision("absent", Equal, 0), true),
        (Compare::mod_revision("a", Less, 6), true),
        (Compare::mod_revision("a", Less, 5), false),
        (Compare::value("a", Equal, "2"), true),
        (Compare::value("a", NotEqual, "2"), false),
        (Compare::value("a", Greater, "10"), true),
        (Compare::value("absent", NotEqual, "2"), false),
        (Compare::lease("a", Equal, 0), true),
        (Compare::lease("a", Greater, 0), false),
        (Compare::version("a", Greater, 0).with_range("d"), true),
        (Compare::version("a", Equal, 2).with_range("d"), false),
        (Compare::version("x", Equal, 0).with_range("z"), true),
    ];
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        filled(&mut client).await;
        for (number, (compare, want)) in cases.into_iter().enumerate() {
            let answer = client.txn(Txn::new().when([compare])).await.unwrap();
            assert_eq!(answer.succeeded(), want, "case {number}");
        }
    });
}

#[test]
fn a_transaction_sees_its_own_writes_under_one_revision() {
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        filled(&mut client).await;
        let inner = Txn::new()
            .when([Compare::value("a", CompareOp::Equal, "2")])
            .and_then([TxnOp::put("n", "then", None)])
            .or_else([TxnOp::put("n", "else", None)]);
        let txn = Txn::new().and_then([
            TxnOp::get("a", None),
            TxnOp::put("a", "5", None),
            TxnOp::get("a", None),
            TxnOp::delete("b", None),
            TxnOp::txn(inner),
        ]);
        let answer = client.txn(txn).await.unwrap();
        assert_eq!(answer.header().unwrap().revision(), 6);
        let seen: Vec<String> = answer.op_responses().iter().map(describe).collect();
        // As in etcd, the inner condition is evaluated before anything is written.
        assert_eq!(seen, ["a=2 3/5/2 at 5", "put at 6", "a=5 3/6/3 at 6", "deleted 1", "txn true"]);
        let all = client.get("a", Some(GetOptions::new().with_all_keys())).await.unwrap();
        let all: Vec<String> = all.kvs().iter().map(text).collect();
        assert_eq!(all, ["a=5 3/6/3", "c=3 2/2/1", "n=then 6/6/1"]);
    });
}

fn describe(response: &TxnOpResponse) -> String {
    match response {
        TxnOpResponse::Get(get) => format!("{} at {}", text(&get.kvs()[0]), get.header().unwrap().revision()),
        TxnOpResponse::Put(put) => format!("put at {}", put.header().unwrap().revision()),
        TxnOpResponse::Delete(delete) => format!("deleted {}", delete.deleted()),
        TxnOpResponse::Txn(txn) => format!("txn {}", txn.succeeded()),
    }
}

#[test]
fn an_invalid_transaction_changes_nothing() {
    let put = |key: &str| TxnOp::put(key, "x", None);
    let duplicate = "InvalidArgument: etcdserver: duplicate key given in txn request";
    let nested = |then, otherwise| TxnOp::txn(Txn::new().and_then([then]).or_else([otherwise]));
    let all = Some(DeleteOptions::new().with_range("z"));
    let cases: Vec<(Vec<TxnOp>, &str)> = vec![
        (vec![put("k"), put("k")], duplicate),
        (vec![put("k"), TxnOp::delete("k", None)], duplicate),
        (vec![TxnOp::delete("a", all), put("k")], duplicate),
        (vec![put("k"), nested(put("k"), put("l"))], duplicate),
        (vec![put("k"), nested(put("l"), put("k"))], duplicate),
        (vec![nested(TxnOp::delete("k", None), put("l")), put("k")], duplicate),
        (
            (0..129).map(|n| put(&n.to_string())).collect(),
            "InvalidArgument: etcdserver: too many operations in txn request",
        ),
        (vec![put("")], "InvalidArgument: etcdserver: key is not provided"),
        (
            vec![put("k"), TxnOp::put("l", "", Some(PutOptions::new().with_lease(9)))],
            "NotFound: etcdserver: requested lease not found",
        ),
        (
            vec![put("k"), TxnOp::get("l", Some(GetOptions::new().with_revision(9)))],
            "OutOfRange: etcdserver: mvcc: required revision is a future revision",
        ),
        // If key and lease are both missing, the error names the key, unlike outside of a transaction.
        (
            vec![TxnOp::put("l", "", Some(PutOptions::new().with_ignore_value().with_lease(9)))],
            "InvalidArgument: etcdserver: key not found",
        ),
        (
            vec![put("k"), TxnOp::get("l", Some(GetOptions::new().with_revision(-2)))],
            "OutOfRange: etcdserver: mvcc: required revision has been compacted",
        ),
    ];
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        for (number, (ops, want)) in cases.into_iter().enumerate() {
            let answer = client.txn(Txn::new().and_then(ops)).await;
            assert_eq!(refusal(answer), want, "case {number}");
        }
        assert_eq!(etcd.cluster.revision(), 1);
        let fine = Txn::new().and_then([nested(put("k"), put("k")), put("l")]);
        assert!(client.txn(fine).await.unwrap().succeeded(), "only one branch of a nested transaction runs");
        // etcd overlooks that an open range overlaps a put, and executes both in order.
        let open = TxnOp::delete("a", Some(DeleteOptions::new().with_from_key()));
        client.txn(Txn::new().and_then([open, put("k")])).await.unwrap();
        let left = client.get("a", Some(GetOptions::new().with_all_keys())).await.unwrap();
        assert_eq!(left.kvs().iter().map(text).collect::<Vec<_>>(), ["k=x 3/3/1"]);
    });
}

#[test]
fn a_negative_revision_reads_the_newest_except_in_a_transaction() {
    let compacted = "OutOfRange: etcdserver: mvcc: required revision has been compacted";
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        filled(&mut client).await;
        let at = |revision| Some(GetOptions::new().with_revision(revision));
        let within = |revision| Txn::new().and_then([TxnOp::get("a", at(revision))]);
        assert_eq!(text(&client.get("a", at(-2)).await.unwrap().kvs()[0]), "a=2 3/5/2");
        // Before the first compaction, the compacted revision is -1.
        assert!(client.txn(within(-1)).await.unwrap().succeeded());
        assert_eq!(refusal(client.txn(within(-2)).await), compacted);
        assert_eq!(refusal(client.compact(-1, None).await), compacted);
        client.compact(0, None).await.unwrap();
        assert_eq!(refusal(client.txn(within(-1)).await), compacted);
        assert!(client.txn(within(0)).await.unwrap().succeeded());
    });
}

#[test]
fn a_compaction_forbids_the_past_and_keeps_the_present() {
    let compacted = "OutOfRange: etcdserver: mvcc: required revision has been compacted";
    in_cluster(|etcd| async move {
        let mut client = etcd.client(0).await;
        filled(&mut client).await;
        client.delete("c", None).await.unwrap();
        let options = Some(CompactionOptions::new().with_physical());
        assert_eq!(client.compact(5, options).await.unwrap().header().unwrap().revision(), 6);
        let at = |revision| Some(GetOptions::new().with_all_keys().with_revision(revision));
        assert_eq!(refusal(client.get("a", at(4)).await), compacted);
        assert_eq!(keys(client.get("a", at(5)).await.unwrap().kvs()), "abc");
        assert_eq!(keys(client.get("a", at(6)).await.unwrap().kvs()), "ab");
        assert_eq!(refusal(client.compact(5, None).await), compacted);
        let future = "OutOfRange: etcdserver: mvcc: required revision is a future revision";
        assert_eq!(refusal(client.compact(7, None).await), future);
        client.compact(6, None).await.unwrap();
        assert_eq!(text(&client.get("a", None).await.unwrap().kvs()[0]), "a=2 3/5/2");
    });
}
