//! The way of a traverser as a value.

use std::ops::Range;
use std::sync::Arc;

use crate::Value;

/// The step labels given at one object of a path; some.
pub type StepLabels = Arc<[Arc<str>]>;

/// Objects a traverser passed, each with the step labels given there. Most objects have none, and of most paths all: those hold nothing for labels.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// The objects.
    pub objects: Vec<Value>,
    /// Of each object; empty if none has any.
    labels: Box<[Option<StepLabels>]>,
}

impl Path {
    /// A path without labels.
    pub fn unlabelled(objects: Vec<Value>) -> Path {
        Path { objects, labels: Box::default() }
    }

    /// A path with the labels of each of its objects.
    pub fn labelled(objects: Vec<Value>, labels: Vec<Option<StepLabels>>) -> Path {
        debug_assert_eq!(objects.len(), labels.len());
        let has_any = labels.iter().flatten().any(|own| !own.is_empty());
        Path { objects, labels: if has_any { labels.into() } else { Box::default() } }
    }

    /// Other objects with the same labels, as many.
    pub fn with_objects(&self, objects: Vec<Value>) -> Path {
        debug_assert_eq!(objects.len(), self.objects.len());
        Path { objects, labels: self.labels.clone() }
    }

    /// Some of it that follow one another.
    pub fn part(&self, of: Range<usize>) -> Path {
        let labels = if self.labels.is_empty() { Vec::new() } else { self.labels[of.clone()].to_vec() };
        Path { objects: self.objects[of].to_vec(), labels: labels.into() }
    }

    /// The labels of each object.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &[Arc<str>]> + ExactSizeIterator {
        (0..self.objects.len()).map(|place| match self.labels.get(place) {
            Some(Some(labels)) => labels,
            _ => <&[Arc<str>]>::default(),
        })
    }

    /// For how many objects it has room for labels: all, or none.
    pub fn places_of_labels(&self) -> usize {
        self.labels.len()
    }
}
