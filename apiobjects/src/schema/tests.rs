//! Tests of the table's parser.

use super::{Kind, Merge, Schema};
use crate::Resource;

#[test]
fn every_served_kind_has_a_schema() {
    for resource in Resource::ALL {
        let fields = Schema::get().of(resource);
        assert!(fields.field("metadata").is_some(), "{resource:?}");
        assert!(fields.field("kind").is_some(), "{resource:?}");
    }
}

#[test]
fn field_markers_are_parsed() {
    let pod = Schema::get().named("PodSpec").unwrap();
    let volumes = pod.field("volumes").unwrap();
    assert_eq!(volumes.merge, Merge::ByKey("name"));
    assert!(!volumes.is_required);
    let containers = pod.field("containers").unwrap();
    assert!(containers.is_required);
    let metadata = Schema::get().named("ObjectMeta").unwrap();
    assert_eq!(metadata.field("finalizers").unwrap().merge, Merge::Set);
    assert_eq!(metadata.field("uid").unwrap().kind, Kind::String(Some("types.UID")));
    assert!(metadata.field("deletionTimestamp").unwrap().is_optional);
    assert_eq!(metadata.numbered(11).unwrap().name, "labels");
}

#[test]
fn fields_of_embedded_messages_are_inlined() {
    let volume = Schema::get().named("Volume").unwrap();
    assert!(volume.field("emptyDir").is_some());
    assert_eq!(volume.numbered(1).unwrap().name, "name");
    let source = Schema::get().at(volume.embedded(2).unwrap());
    assert_eq!(source.numbered(2).unwrap().name, "emptyDir");
}
