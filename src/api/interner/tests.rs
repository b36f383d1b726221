use super::*;

#[test]
fn same_value_interned_twice_is_shared() {
    let interner = Interner::default();
    assert!(Arc::ptr_eq(&interner.intern("a"), &interner.intern("a")));
    let (plain, zoned) = (interner.recurrence("@daily", None), interner.recurrence("@daily", Some("UTC")));
    assert!(Arc::ptr_eq(&plain, &interner.recurrence("@daily", None)));
    assert!(Arc::ptr_eq(&zoned, &interner.recurrence("@daily", Some("UTC"))));
    assert_eq!((plain.time_zone(), zoned.time_zone()), (None, Some("UTC")));
    let uid = Uid::new("u");
    let ours = interner.controller("batch", "CronJob", "a", &uid);
    assert!(Arc::ptr_eq(&ours, &interner.controller("batch", "CronJob", "a", &uid)));
}

#[test]
fn an_equal_key_does_not_make_equal_values() {
    let interner = Interner::default();
    let tricky = interner.recurrence("@daily\nUTC", None);
    assert_eq!(interner.recurrence("@daily", Some("UTC")).schedule(), "@daily");
    assert_eq!(interner.recurrence("@daily\nUTC", None), tricky);
    let uid = Uid::new("u");
    let _ours = interner.controller("batch", "CronJob", "a", &uid);
    assert_eq!(&*interner.controller("batch", "CronJob", "b", &uid).name, "b");
    assert_eq!(&*interner.controller("x", "CronJob", "a", &uid).group, "x");
}

#[test]
fn unused_value_is_dropped() {
    let interner = Interner::default();
    let kept: Vec<_> = (0..10).map(|i| interner.intern(&format!("kept-{i}"))).collect();
    for i in 0..100 * FEW {
        interner.intern(&format!("gone-{i}"));
    }
    assert!(interner.texts.entries.len() <= 2 * FEW + 10, "{}", interner.texts.entries.len());
    assert!(kept.iter().all(|text| Arc::ptr_eq(text, &interner.intern(text))));
}
