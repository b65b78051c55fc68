//! What follows a model's last layer.

use super::layers::Stack;
use crate::graph::{Activation, FlagKind, Graph, Loss, NodeId, Op, Shape};

/// What follows a model's last layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Head {
    /// Logits over the vocabulary, for every token.
    Language,
    /// Logits of a few labels, for every token.
    EachToken {
        /// How many.
        labels: u32,
    },
    /// Logits of a few labels, for the sample.
    Sample {
        /// How many.
        labels: u32,
    },
    /// Nothing: the program that trains the model adds something.
    Bare,
}

impl Head {
    /// By the class that a config or a printed module names.
    pub(crate) fn of_class(class: &str, labels: u32) -> Option<Self> {
        let ends = |ends: &[&str]| ends.iter().any(|end| class.ends_with(end));
        if class == "ElectraForPreTraining" {
            // Tells replaced tokens from others.
            Some(Head::EachToken { labels: 1 })
        } else if ends(&["ForMaskedLM", "ForPreTraining", "ForCausalLM", "LMHeadModel"])
            || ends(&["ForConditionalGeneration"])
        {
            Some(Head::Language)
        } else if ends(&["ForSequenceClassification", "ForImageClassification"])
            || ends(&["ForImageClassificationWithTeacher"])
        {
            Some(Head::Sample { labels })
        } else if ends(&["ForNextSentencePrediction"]) {
            Some(Head::Sample { labels: 2 })
        } else if ends(&["ForTokenClassification"]) {
            Some(Head::EachToken { labels })
        } else if ends(&["ForQuestionAnswering"]) {
            // Where the answer begins and where it ends.
            Some(Head::EachToken { labels: 2 })
        } else if ends(&["Model"]) {
            Some(Head::Bare)
        } else {
            None
        }
    }
}

/// How a family makes logits.
#[derive(Clone, Copy)]
pub(super) struct Logits {
    pub(super) vocabulary: u32,
    /// The embedding's own table is the last product's weight.
    pub(super) tied: bool,
    pub(super) loss: Loss,
}

impl Stack<'_> {
    /// Ends a model whose layers gave `last`.
    pub(super) fn finish_with(mut self, last: NodeId, head: Head, logits: Logits) -> Graph {
        match head {
            Head::Language => {
                if logits.tied {
                    self.tied_head(last, logits.vocabulary);
                } else {
                    self.linear(last, logits.vocabulary, false);
                }
                self.finish(logits.loss)
            }
            Head::EachToken { labels } => {
                let dropped = self.dropout(last);
                self.linear(dropped, labels, true);
                self.finish(Loss::CrossEntropy)
            }
            Head::Sample { labels } => {
                // Decoders score every token and pick the last one's.
                let scores = self.linear(last, labels, false);
                self.builder.push(Op::Select, &[scores], Shape::features(labels));
                self.finish(Loss::CrossEntropy)
            }
            Head::Bare => self.finish_bare(),
        }
    }

    /// Ends a model without a head, whose states are its result.
    pub(super) fn finish_bare(mut self) -> Graph {
        let detail =
            "the model has no head: its states are taken to be compared with targets of their size";
        self.builder.flag(FlagKind::Assumption, detail);
        self.finish(Loss::Elementwise)
    }

    /// One token's state, through a product of its own if the model has one, and its logits.
    pub(super) fn finish_pooled(mut self, last: NodeId, labels: u32, product: bool) -> Graph {
        let width = self.builder.shape(last).channels;
        let mut pooled = self.builder.push(Op::Select, &[last], Shape::features(width));
        if product {
            let dense = self.linear(pooled, width, true);
            pooled = self.builder.activate(dense, Activation::Tanh);
        }
        let dropped = self.dropout(pooled);
        self.linear(dropped, labels, true);
        self.finish(Loss::CrossEntropy)
    }
}
