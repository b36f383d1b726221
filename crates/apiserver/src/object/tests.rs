use super::*;

#[test]
fn an_object_is_the_same_as_tree_and_as_text() {
    let rows = [
        ("kind and apiVersion come first", json!({"apiVersion": "v1", "a": 1, "kind": "K", "z": "\u{1}é\""})),
        ("without them", json!({"metadata": {"name": "n"}})),
        ("nothing else", json!({"kind": "K", "apiVersion": "v1"})),
        ("nothing at all", json!({})),
    ];
    for (name, tree) in rows {
        let mut entry = Entry::Whole(Object::new(tree.clone()));
        let line = entry.text().line().clone();
        assert_eq!(serde_json::from_slice::<Value>(&line).ok(), Some(tree.clone()), "{name}");
        let rest = [b"{", entry.text().rest()].concat();
        let mut bare = tree.clone();
        bare.as_object_mut().into_iter().for_each(|map| map.retain(|key, _| !is_head(key)));
        assert_eq!(serde_json::from_slice::<Value>(&rest).ok(), Some(bare), "{name}");
        entry.pack();
        assert_eq!(**entry.object(), tree, "{name}");
    }
}
