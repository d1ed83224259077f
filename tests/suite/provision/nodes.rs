//! The selected nodes, and the tolerations of their OSDs.

use osd_migrate::domain::provision::{Nodes, missing_tolerations, nodes};
use osd_migrate::domain::storage::{NodeTerm, Placement, Requirement, Taint, Toleration};

use super::*;
use crate::support::check;

fn chosen(case: &Case) -> Vec<String> {
    nodes(&case.seen, false).chosen.into_iter().map(|node| node.0).collect()
}

fn left_out(case: &Case) -> Vec<(String, String)> {
    nodes(&case.seen, false).left_out
}

fn named(names: &[&str]) -> Case {
    Case::of(all(), &[]).with(|case| {
        case.storage().all_nodes = false;
        case.storage().nodes = names.iter().map(|name| entry(name, DeviceSelection::default())).collect();
    })
}

fn taint(key: &str, value: &str, effect: &str) -> Taint {
    Taint { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() }
}

fn toleration(key: &str, operator: &str, value: &str, effect: &str) -> Toleration {
    let [key, operator, value, effect] = [key, operator, value, effect].map(str::to_owned);
    Toleration { key, operator, value, effect, seconds: None }
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> Requirement {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Requirement { key: key.to_owned(), operator: operator.to_owned(), values }
}

fn labels(requirements: &[Requirement]) -> NodeTerm {
    NodeTerm { labels: requirements.to_vec(), fields: Vec::new() }
}

#[test]
fn nodes_are_all_or_the_named_ones_in_declared_sequence() {
    assert_eq!(chosen(&Case::of(all(), &[])), ["h1", "h2", "h3"]);
    assert_eq!(chosen(&named(&["h3", "h1"])), ["h3", "h1"]);
    assert_eq!(chosen(&named(&["h3", "h1", "h3"])), ["h3", "h1"]);
    assert_eq!(chosen(&named(&[])), Vec::<String>::new());
    // Rook ignores the named nodes then.
    let both = named(&["h3"]).with(|case| case.storage().all_nodes = true);
    assert_eq!(chosen(&both), ["h1", "h2", "h3"]);
}

#[test]
fn node_is_named_by_its_hostname_or_its_name() {
    let case = named(&["short", "h2"]).with(|case| case.node().hostname = "short".to_owned());
    assert_eq!(chosen(&case), ["h1", "h2"]);
}

#[test]
fn node_without_selection_is_chosen_only_for_osds_on_file() {
    let silent = Case::of(DeviceSelection::default(), &[]);
    assert_eq!(nodes(&silent.seen, false), Nodes::default());
    assert_eq!(nodes(&silent.seen, true).chosen.len(), 3);
    let one = named(&["h1", "h2"]).with(|case| {
        case.storage().selection = DeviceSelection::default();
        case.storage().nodes[1].selection = filter("sdb");
    });
    assert_eq!(chosen(&one), ["h2"]);
    check!(&left_out(&one)[..], [(node, why)] if node == "h1" && why.starts_with("no disks are selected"));
    assert_eq!(nodes(&one.seen, true).chosen.len(), 2);
}

#[test]
fn named_node_that_is_unsuitable_is_left_out_with_a_reason() {
    let dedicated = || taint("dedicated", "db", "NoSchedule");
    let cases: [(Change<'_>, &str); 6] = [
        (&|case| case.seen.kube.nodes.retain(|name, _| name.0 != "h1"), "no node has this name"),
        (&|case| case.node().cordoned = true, "it is cordoned"),
        (&|case| case.node().ready = false, "it is not Ready"),
        (
            &|case| case.storage().placement.terms = vec![labels(&[requirement("role", "Exists", &[])])],
            "spec.placement (all, osd) does not allow it",
        ),
        (
            &|case| case.node().taints = vec![dedicated()],
            "its taint dedicated=db:NoSchedule is not tolerated",
        ),
        (
            &|case| case.node().taints = vec![taint("node.kubernetes.io/disk-pressure", "", "NoSchedule")],
            "its taint node.kubernetes.io/disk-pressure:NoSchedule is not tolerated",
        ),
    ];
    for (change, expected) in cases {
        let case = named(&["h1"]).with(change);
        assert_eq!(chosen(&case), Vec::<String>::new(), "{expected}");
        check!(&left_out(&case)[..], [(node, why)] if node == "h1" && why.starts_with(expected));
    }
}

#[test]
fn all_nodes_reports_cordoned_and_not_ready_nodes_only() {
    let case = Case::of(all(), &[]).with(|case| {
        case.storage().placement.terms = vec![labels(&[requirement("role", "NotIn", &["control"])])];
        let mut machines = case.seen.kube.nodes.values_mut();
        let first = machines.next().unwrap();
        first.labels.insert("role".to_owned(), "control".to_owned());
        machines.next().unwrap().taints = vec![taint("dedicated", "", "NoSchedule")];
        machines.next().unwrap().ready = false;
    });
    assert_eq!(chosen(&case), Vec::<String>::new());
    check!(&left_out(&case)[..], [(node, why)] if node == "h3" && why == "it is not Ready");
    // A cordoned node has both: the message names the cordon.
    let cordoned = Case::of(all(), &[]).with(|case| {
        case.node().cordoned = true;
        case.node().taints = vec![taint("node.kubernetes.io/unschedulable", "", "NoSchedule")];
    });
    check!(&left_out(&cordoned)[..], [(node, why)] if node == "h1" && why == "it is cordoned");
}

#[test]
fn taint_of_any_effect_excludes_new_osds_unless_tolerated() {
    let with = |effect: &str, tolerations: Vec<Toleration>| {
        named(&["h1"]).with(|case| {
            case.node().taints = vec![taint("dedicated", "db", effect)];
            case.storage().placement = Placement { terms: Vec::new(), tolerations };
        })
    };
    for effect in ["NoSchedule", "NoExecute", "PreferNoSchedule"] {
        assert_eq!(chosen(&with(effect, Vec::new())), Vec::<String>::new(), "{effect}");
        assert_eq!(
            chosen(&with(effect, vec![toleration("dedicated", "Exists", "", "")])),
            ["h1"],
            "{effect}"
        );
    }
}

#[test]
fn tolerations_match_taints_as_in_kubernetes() {
    let bare = Node { taints: vec![taint("dedicated", "db", "NoSchedule")], ..named(&["h1"]).node().clone() };
    for (toleration, covers) in [
        (toleration("dedicated", "Equal", "db", "NoSchedule"), true),
        (toleration("dedicated", "", "db", "NoSchedule"), true),
        (toleration("dedicated", "Equal", "db", ""), true),
        (toleration("dedicated", "Exists", "", "NoSchedule"), true),
        (toleration("", "Exists", "", ""), true),
        (toleration("dedicated", "Equal", "web", "NoSchedule"), false),
        (toleration("dedicated", "Equal", "", "NoSchedule"), false),
        (toleration("dedicated", "Equal", "db", "NoExecute"), false),
        (toleration("other", "Exists", "", ""), false),
        (toleration("dedicated", "Gt", "db", ""), false),
    ] {
        assert_eq!(
            missing_tolerations(std::slice::from_ref(&toleration), &bare).is_empty(),
            covers,
            "{toleration:?}"
        );
    }
}

#[test]
fn osd_gets_tolerations_only_for_taints_that_block_its_pod() {
    let tainted = Node {
        taints: vec![
            taint("dedicated", "db", "NoSchedule"),
            taint("empty", "", "NoExecute"),
            taint("soft", "", "PreferNoSchedule"),
            taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),
            taint("node.kubernetes.io/not-ready", "", "NoExecute"),
            taint("node.cloudprovider.kubernetes.io/shutdown", "", "NoSchedule"),
        ],
        ..named(&["h1"]).node().clone()
    };
    let missing = missing_tolerations(&[], &tainted);
    let expected =
        [toleration("dedicated", "Equal", "db", "NoSchedule"), toleration("empty", "Equal", "", "NoExecute")];
    assert_eq!(missing, expected);
    // With these tolerations none is missing: the search comes to an end.
    assert_eq!(missing_tolerations(&missing, &tainted), []);
    // A toleration for a limited time would let the OSD start, and evict it repeatedly.
    let for_a_time: Vec<Toleration> =
        missing.iter().map(|found| Toleration { seconds: Some(300), ..found.clone() }).collect();
    assert_eq!(missing_tolerations(&for_a_time, &tainted), missing);
}

#[test]
fn node_term_needs_all_requirements_and_one_term_suffices() {
    let meets = |terms: &[NodeTerm]| {
        let case = named(&["h1"]).with(|case| {
            case.node().labels =
                [("role".to_owned(), "storage".to_owned()), ("disks".to_owned(), "12".to_owned())].into();
            case.storage().placement.terms = terms.to_vec();
        });
        !chosen(&case).is_empty()
    };
    for (key, operator, values, passes) in [
        ("role", "In", vec!["web", "storage"], true),
        ("role", "In", vec!["web"], false),
        ("none", "In", vec![""], false),
        ("role", "NotIn", vec!["web"], true),
        ("role", "NotIn", vec!["storage"], false),
        ("none", "NotIn", vec!["storage"], true),
        ("role", "Exists", vec![], true),
        ("none", "Exists", vec![], false),
        ("none", "DoesNotExist", vec![], true),
        ("role", "DoesNotExist", vec![], false),
        ("disks", "Gt", vec!["11"], true),
        ("disks", "Gt", vec!["12"], false),
        ("disks", "Lt", vec!["13"], true),
        ("disks", "Lt", vec!["12"], false),
        ("role", "Gt", vec!["1"], false),
        ("none", "Lt", vec!["1"], false),
        ("disks", "Gt", vec!["1", "2"], false),
        ("role", "Like", vec!["storage"], false),
    ] {
        assert_eq!(
            meets(&[labels(&[requirement(key, operator, &values)])]),
            passes,
            "{key} {operator} {values:?}"
        );
    }
    let yes = || requirement("role", "Exists", &[]);
    let no = || requirement("none", "Exists", &[]);
    assert!(!meets(&[labels(&[yes(), no()])]));
    assert!(meets(&[labels(&[no()]), labels(&[yes()])]));
    assert!(!meets(&[NodeTerm::default()]), "a term that says nothing holds for no node");
    let field = |key: &str, name: &str| NodeTerm {
        labels: Vec::new(),
        fields: vec![requirement(key, "In", &[name])],
    };
    assert!(meets(&[field("metadata.name", "h1")]));
    assert!(!meets(&[field("metadata.name", "h2")]));
    assert!(!meets(&[field("metadata.other", "h1")]));
}
