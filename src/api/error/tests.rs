use super::*;

#[test]
fn class_of_a_failure_by_status_and_text() {
    use FailureClass::{Key, Namespace, Server};
    let rows = [
        ("no answer", 0, "no answer within 10 s", Server, false),
        ("overload", 429, "too many requests", Server, false),
        ("unavailable", 503, "etcdserver: leader changed", Server, false),
        ("timeout", 504, "Timeout: request did not complete within requested timeout", Server, false),
        ("a panic of the server", 500, "Internal error occurred: panic", Server, false),
        ("an object that etcd does not take", 500, "etcdserver: request is too large", Key, false),
        ("expired credentials", 401, "Unauthorized", Server, false),
        ("a request that took too long", 408, "Request Timeout", Server, false),
        (
            "a webhook that cannot be called",
            500,
            "Internal error occurred: failed calling webhook \"a.b.c\": failed to call webhook: Post \"https://x\": \
             context deadline exceeded",
            Namespace,
            true,
        ),
        ("a webhook's denial", 403, "admission webhook \"a.b.c\" denied the request: no", Namespace, true),
        (
            "a webhook's denial of the object",
            422,
            "admission webhook \"a.b.c\" denied the request: no",
            Namespace,
            true,
        ),
        ("a webhook that is overloaded", 429, "admission webhook \"a.b.c\" denied the request: later", Server, true),
        ("a webhook that is away", 503, "admission webhook \"a.b.c\" denied the request: later", Server, true),
        (
            "a policy's denial",
            422,
            "jobs.batch \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            Namespace,
            true,
        ),
        (
            "a quota",
            403,
            "jobs.batch \"x\" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: \
             count/jobs.batch=5, limited: count/jobs.batch=5",
            Namespace,
            true,
        ),
        (
            "a missing right",
            403,
            "jobs.batch is forbidden: User \"u\" cannot create resource \"jobs\"",
            Namespace,
            false,
        ),
        ("an invalid object", 422, "Job.batch \"x\" is invalid: spec.template: Required value", Key, false),
        ("a bad request", 400, "json: cannot unmarshal", Key, false),
        ("another write came first", 409, "the object has been modified", Key, false),
    ];
    for (sentence, code, message, class, is_admission) in rows {
        let error = ApiError { code, ..ApiError::transport("create Job", ObjectName::new("ns", "x"), message) };
        assert_eq!((error.class(), error.is_admission()), (class, is_admission), "{sentence}");
    }
    let terminating = ApiError {
        code: 403,
        namespace_terminating: true,
        ..ApiError::transport("create Job", ObjectName::new("ns", "x"), "being terminated")
    };
    assert_eq!(terminating.class(), Namespace);
    let rows = [
        ("a quota that changed meanwhile", "create Job", "Conflict", Namespace),
        ("a taken name", "create Job", "AlreadyExists", Key),
        ("a status of an old version", "update status of CronJob", "Conflict", Key),
        ("a Job of another UID", "delete Job", "Conflict", Key),
    ];
    for (sentence, operation, reason, class) in rows {
        let error = ApiError::transport(operation, ObjectName::new("ns", "x"), "please apply your changes");
        let error = ApiError { code: 409, reason: reason.to_owned(), ..error };
        assert_eq!(error.class(), class, "{sentence}");
    }
}
