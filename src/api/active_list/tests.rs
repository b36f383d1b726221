use proptest::prelude::*;

use super::*;

fn reference(uid: u8) -> ObjectReference {
    let text = String::new;
    ObjectReference {
        kind: text(),
        namespace: text(),
        name: format!("job-{uid}"),
        uid: Uid::new(&uid.to_string()),
        api_version: text(),
        resource_version: text(),
        field_path: text(),
    }
}

proptest! {
    #[test]
    fn it_is_a_list_of_distinct_references_in_the_order_of_addition(
        changes in prop::collection::vec((any::<bool>(), 0_u8..60), 0..400),
    ) {
        let mut list = ActiveList::default();
        let mut model: Vec<ObjectReference> = Vec::new();
        for (adds, uid) in changes {
            let known = model.iter().position(|known| known.uid == reference(uid).uid);
            prop_assert_eq!(list.contains(&reference(uid).uid), known.is_some());
            match (adds, known) {
                (true, None) => model.push(reference(uid)),
                (false, Some(place)) => { model.remove(place); }
                _ => {}
            }
            if adds {
                list.push(reference(uid));
            } else {
                prop_assert_eq!(list.remove(&reference(uid).uid), known.is_some());
            }
            prop_assert_eq!((list.len(), list.is_empty()), (model.len(), model.is_empty()));
            prop_assert!(list.iter().eq(model.iter()));
            // What is removed leaves a place until others are added.
            let is_added = adds && known.is_none();
            prop_assert!(!is_added || list.references.len() <= 2 * list.len() + SHORT + 1, "{}", list.references.len());
        }
        prop_assert_eq!(&list, &model.into_iter().collect());
    }
}
