use super::*;

#[test]
fn signature_matches_the_published_test_vector() {
    let keys = signing_keys("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
    let signature = signatures(&keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
    assert_eq!(signature.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
}

#[test]
fn each_secret_adds_a_signature() {
    let keys = signing_keys("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n\n  plain text \n").expect("secrets");
    let both = signatures(&keys, "msg_1", 1, b"{}").expect("signatures");
    let parts: Vec<&str> = both.split(' ').collect();
    assert_eq!(parts.len(), 2);
    assert!(parts.iter().all(|part| part.starts_with("v1,")));
    assert_eq!(Some(parts[1].to_owned()), signatures(&signing_keys("plain text").expect("a secret"), "msg_1", 1, b"{}"));
    assert_eq!(signatures(&[], "msg_1", 1, b"{}"), None);
    assert!(signing_keys("whsec_not base64!").is_err());
    assert!(signing_keys("whsec_").is_err());
    assert!(signing_keys(" \n ").is_err());
}
