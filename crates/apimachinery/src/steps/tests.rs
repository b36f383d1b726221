use super::*;

#[test]
fn steps_are_those_of_the_work_on_this_thread() {
    add(5);
    let (steps, sum) = of(|| {
        add(2);
        let other = std::thread::spawn(|| add(100));
        assert!(other.join().is_ok());
        each([1, 2, 3].into_iter()).sum::<i32>()
    });
    assert_eq!((steps, sum), (5, 6));
    assert_eq!(of(|| ()).0, 0);
}
