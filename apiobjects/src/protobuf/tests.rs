//! Bodies as a Go client encodes them.

use serde_json::{Value, json};

use super::{ProtobufError, parse, parse_delete_options};
use crate::{
    Resource,
    decoding::{FieldValidation, decode},
};

/// Encodes a field with bytes.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 0x7f {
        field.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    field.push(u8::try_from(length).unwrap());
    field.extend(content);
    field
}

fn text(number: u8, content: &str) -> Vec<u8> {
    bytes(number, content.as_bytes())
}

/// Encodes a field with a small number.
fn number(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [text(1, api_version), text(2, kind)].concat();
    [b"k8s\0".to_vec(), bytes(1, &type_meta), bytes(2, raw)].concat()
}

#[test]
fn object_is_decoded_by_its_field_numbers() {
    let labels = [
        bytes(11, &[text(1, "a"), text(2, "b")].concat()),
        bytes(11, &text(1, "empty")),
    ]
    .concat();
    let time = bytes(8, &number(1, 60));
    let metadata = [text(1, "name"), labels, time].concat();
    let probe = bytes(1, &bytes(2, &bytes(2, &[number(1, 1), text(3, "web")].concat())));
    // Field number 16 takes two bytes.
    let container = [
        text(1, "c"),
        bytes(10, &[probe, number(4, 5)].concat()),
        vec![0x80, 1, 1],
    ]
    .concat();
    let pod = bytes(2, &container);
    let template = bytes(6, &bytes(2, &pod));
    let exit_codes = bytes(2, &bytes(3, &[1, 2]));
    let policy = bytes(11, &bytes(1, &exit_codes));
    // -1 in ten bytes.
    let deadline = [vec![3 << 3], vec![0xff; 9], vec![1]].concat();
    // Field number 17.
    let unknown = vec![0x88, 1, 1];
    let spec = bytes(2, &[number(1, 2), deadline, template, policy, unknown].concat());
    let raw = [bytes(1, &metadata), spec].concat();
    let expected = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "name", "labels": {"a": "b", "empty": ""}, "creationTimestamp": "1970-01-01T00:01:00Z"},
        "spec": {
            "parallelism": 2,
            "activeDeadlineSeconds": -1,
            "template": {"spec": {"containers": [{
                "name": "c",
                "livenessProbe": {"httpGet": {"port": "web"}, "periodSeconds": 5},
                "stdin": true,
            }]}},
            "podFailurePolicy": {"rules": [{"onExitCodes": {"values": [1, 2]}}]},
        },
    });
    let read = parse(Resource::Job, &body("batch/v1", "Job", &raw)).map(Value::Object);
    assert_eq!(read, Ok(expected));
}

#[test]
fn wrapper_messages_become_plain_json() {
    let renewed = bytes(
        4,
        &[number(1, 1), [vec![2 << 3], vec![0xc0, 0x84, 0x3d]].concat()].concat(),
    );
    let read = parse(Resource::Lease, &body("", "", &bytes(2, &renewed))).map(Value::Object);
    assert_eq!(read, Ok(json!({"spec": {"renewTime": "1970-01-01T00:00:01.001000Z"}})));
    let never = parse(Resource::Event, &body("", "", &bytes(6, &[]))).map(Value::Object);
    assert_eq!(never, Ok(json!({"firstTimestamp": null})));
    let binary = bytes(3, &[text(1, "k"), bytes(2, &[0, 1])].concat());
    let read = parse(Resource::ConfigMap, &body("", "", &binary)).map(Value::Object);
    assert_eq!(read, Ok(json!({"binaryData": {"k": "AAE="}})));
}

#[test]
fn delete_options_are_decoded() {
    let raw = [bytes(2, &text(1, "u")), text(4, "Background")].concat();
    let read = parse_delete_options(&body("v1", "DeleteOptions", &raw)).map(Value::Object);
    let expected = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"},
        "propagationPolicy": "Background"});
    assert_eq!(read, Ok(expected));
}

#[test]
fn truncated_or_mistyped_messages_are_malformed() {
    assert_eq!(parse(Resource::Job, b"{}"), Err(ProtobufError::NoPrefix));
    let whole = body("batch/v1", "Job", &bytes(1, &text(1, "name")));
    assert!(parse(Resource::Job, &whole).is_ok());
    let n_bytes_before_raw = whole.len() - bytes(2, &bytes(1, &text(1, "name"))).len();
    for length in 5..whole.len() {
        let is_between_fields = length == n_bytes_before_raw;
        assert_eq!(
            parse(Resource::Job, &whole[..length]).is_ok(),
            is_between_fields,
            "{length}"
        );
    }
    let number_for_text = body("", "", &bytes(1, &number(1, 1)));
    assert_eq!(parse(Resource::Job, &number_for_text), Err(ProtobufError::Malformed));
    let too_long = body("", "", &[vec![1 << 3], vec![0xff; 11]].concat());
    assert_eq!(parse(Resource::Job, &too_long), Err(ProtobufError::Malformed));
}

#[test]
fn job_of_kubectl_create_job_is_decoded() {
    let digits: Vec<_> = include_str!("create_job.hex")
        .bytes()
        .filter(u8::is_ascii_hexdigit)
        .collect();
    let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    let body: Vec<_> = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    let members = parse(Resource::Job, &body).unwrap();
    let object = decode(Resource::Job, members, FieldValidation::Strict).unwrap().object;
    let owner = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": "hello2", "controller": true,
        "uid": "15e8288e-a8b8-405e-92ef-3b730dfdb428"});
    let expected = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
            "name": "j2",
            "ownerReferences": [owner],
        },
        "spec": {"template": {"metadata": {}, "spec": {
            "containers": [{
                "image": "b2",
                "imagePullPolicy": "Always",
                "name": "a",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "OnFailure",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        }}},
        "status": {},
    });
    assert_eq!(object, expected);
}
