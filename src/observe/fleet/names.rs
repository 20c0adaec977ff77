//! Texts that many records share, as small numbers: reasons of failures, creators of Jobs, namespaces.

use std::collections::BTreeMap;

use crate::observe::facts::Creator;

/// Maximum number of different reasons. Anyone who may write a Job's status can invent reasons.
const REASONS_MAX: usize = 4_096;

/// Maximum number of different creators; each is a field manager, which any client may invent.
const CREATORS_MAX: usize = 250;

/// Stands for creators and reasons beyond the maximum.
const OTHERS: &str = "others";

/// The numbers of the two controllers and of `cronwheel backfill` among the creators.
pub(super) const BUILT_IN: u8 = 0;
pub(super) const CRONWHEEL: u8 = 1;
pub(super) const BACKFILL: u8 = 2;

/// The numbers of reasons, creators and namespaces.
#[derive(Debug)]
pub(super) struct NameIds {
    reasons: Texts<Box<str>>,
    creators: Texts<Creator>,
    namespaces: Texts<Box<str>>,
}

#[derive(Debug)]
struct Texts<T> {
    texts: Vec<T>,
    ids: BTreeMap<T, usize>,
}

impl<T> Default for Texts<T> {
    fn default() -> Texts<T> {
        Texts {
            texts: Vec::new(),
            ids: BTreeMap::new(),
        }
    }
}

impl<T: Clone + Ord> Texts<T> {
    fn id<Q: Ord + ?Sized>(&mut self, text: &Q, own: impl FnOnce(&Q) -> T) -> usize
    where
        T: std::borrow::Borrow<Q>,
    {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.texts.len();
        let text = own(text);
        self.texts.push(text.clone());
        self.ids.insert(text, id);
        id
    }
}

impl Default for NameIds {
    fn default() -> NameIds {
        let mut creators = Texts::default();
        // They get the first numbers: `BUILT_IN`, `CRONWHEEL` and `BACKFILL`.
        for creator in [Creator::BuiltIn, Creator::Cronwheel, Creator::backfill()] {
            creators.id(&creator, Clone::clone);
        }
        NameIds {
            reasons: Texts::default(),
            creators,
            namespaces: Texts::default(),
        }
    }
}

impl NameIds {
    pub(super) fn reason_id(&mut self, reason: &str) -> u16 {
        let is_full = self.reasons.texts.len() >= REASONS_MAX && !self.reasons.ids.contains_key(reason);
        let id = self
            .reasons
            .id(if is_full { OTHERS } else { reason }, |text| text.into());
        u16::try_from(id).unwrap_or_default()
    }

    pub(super) fn reason(&self, id: u16) -> &str {
        self.reasons.texts.get(usize::from(id)).map_or(OTHERS, AsRef::as_ref)
    }

    pub(super) fn creator_id(&mut self, creator: &Creator) -> u8 {
        let is_full = self.creators.texts.len() >= CREATORS_MAX && !self.creators.ids.contains_key(creator);
        let id = if is_full {
            self.creators.id(&Creator::Other(OTHERS.into()), Clone::clone)
        } else {
            self.creators.id(creator, Clone::clone)
        };
        u8::try_from(id).unwrap_or_default()
    }

    pub(super) fn creator(&self, id: u8) -> &Creator {
        self.creators.texts.get(usize::from(id)).unwrap_or(&Creator::BuiltIn)
    }

    pub(super) fn namespace_id(&mut self, namespace: &str) -> u32 {
        let id = self.namespaces.id(namespace, |text| text.into());
        u32::try_from(id).unwrap_or_default()
    }

    /// The namespaces by name, with their numbers.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = (&str, u32)> {
        let ids = self.namespaces.ids.iter();
        ids.map(|(namespace, id)| (namespace.as_ref(), u32::try_from(*id).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_and_backfill_have_fixed_numbers() {
        let ids = NameIds::default();
        assert_eq!(
            [BUILT_IN, CRONWHEEL, BACKFILL].map(|id| ids.creator(id).clone()),
            [Creator::BuiltIn, Creator::Cronwheel, Creator::backfill()]
        );
    }

    #[test]
    fn invented_reasons_and_creators_are_bounded() {
        let mut ids = NameIds::default();
        for n in 0..70_000 {
            ids.reason_id(&format!("Reason{n}"));
            ids.creator_id(&Creator::Other(format!("client-{n}").into()));
        }
        let (reason, creator) = (
            ids.reason_id("Reason69999"),
            ids.creator_id(&Creator::Other("x".into())),
        );
        assert_eq!(ids.reason(reason), OTHERS);
        assert_eq!(ids.creator(creator).as_str(), OTHERS);
        assert!(ids.reasons.texts.len() <= REASONS_MAX + 1 && ids.creators.texts.len() <= CREATORS_MAX + 1);
        let first = ids.reason_id("Reason7");
        assert_eq!(ids.reason(first), "Reason7");
    }
}
