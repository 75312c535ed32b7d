//! Families of series made anew at every scrape from the state of things: what is gone has no series, and nothing is counted twice.

use std::collections::HashMap;

use prometheus::{
    core::{Collector, Desc},
    proto::{
        Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType, Summary,
    },
};

/// The values of a series' labels, in the order of the family's names.
pub(super) type Labels = Vec<String>;

/// Families in the making.
#[derive(Default)]
pub(super) struct Families {
    descs: Vec<Desc>,
    families: Vec<MetricFamily>,
    failed: Option<prometheus::Error>,
}

impl Families {
    pub(super) fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[&str],
        series: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let series = series.into_iter().map(|(values, value)| {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            let mut metric = Metric::from_label(pairs(labels, values));
            metric.set_gauge(gauge);
            metric
        });
        self.add(name, help, labels, MetricType::GAUGE, series.collect());
    }

    pub(super) fn counter(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[&str],
        series: impl IntoIterator<Item = (Labels, u64)>,
    ) {
        let series = series.into_iter().map(|(values, total)| {
            let mut counter = Counter::default();
            counter.set_value(total as f64);
            let mut metric = Metric::from_label(pairs(labels, values));
            metric.set_counter(counter);
            metric
        });
        self.add(name, help, labels, MetricType::COUNTER, series.collect());
    }

    /// Sums and counts, without quantiles.
    pub(super) fn summary(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[&str],
        series: impl IntoIterator<Item = (Labels, (u64, f64))>,
    ) {
        let series = series.into_iter().map(|(values, (count, sum))| {
            let mut summary = Summary::default();
            summary.set_sample_count(count);
            summary.set_sample_sum(sum);
            let mut metric = Metric::from_label(pairs(labels, values));
            metric.set_summary(summary);
            metric
        });
        self.add(name, help, labels, MetricType::SUMMARY, series.collect());
    }

    /// Upper bounds with how many were at or below each, then count and sum of all.
    pub(super) fn histogram(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[&str],
        series: impl IntoIterator<Item = (Labels, (Vec<(f64, u64)>, u64, f64))>,
    ) {
        let series = series.into_iter().map(|(values, (bounds, count, sum))| {
            let buckets = bounds.into_iter().map(|(bound, below)| {
                let mut bucket = Bucket::default();
                bucket.set_upper_bound(bound);
                bucket.set_cumulative_count(below);
                bucket
            });
            let mut histogram = Histogram::default();
            histogram.set_bucket(buckets.collect());
            histogram.set_sample_count(count);
            histogram.set_sample_sum(sum);
            let mut metric = Metric::from_label(pairs(labels, values));
            metric.set_histogram(histogram);
            metric
        });
        self.add(name, help, labels, MetricType::HISTOGRAM, series.collect());
    }

    fn add(
        &mut self,
        name: &str,
        help: &str,
        labels: &[&str],
        of: MetricType,
        series: Vec<Metric>,
    ) {
        let names = labels.iter().map(|label| (*label).to_owned()).collect();
        match Desc::new(name.to_owned(), help.to_owned(), names, HashMap::new()) {
            Ok(desc) => self.descs.push(desc),
            Err(error) => self.failed = Some(error),
        }
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(of);
        family.set_metric(series);
        self.families.push(family);
    }
}

fn pairs(names: &[&str], values: Labels) -> Vec<LabelPair> {
    let pairs = names.iter().zip(values).map(|(name, value)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value(value);
        pair
    });
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort_by(|one, other| one.name().cmp(other.name()));
    pairs
}

/// Makes families of a state that is read at the scrape; of no state the families without series, to know their names.
type Make<T> = fn(&mut Families, Option<&T>);

/// A collector that keeps nothing.
pub(super) struct Scraped<T> {
    descs: Vec<Desc>,
    make: Make<T>,
    read: Box<dyn Fn() -> T + Send + Sync>,
}

impl<T> Scraped<T> {
    pub(super) fn new(
        make: Make<T>,
        read: impl Fn() -> T + Send + Sync + 'static,
    ) -> Result<Self, prometheus::Error> {
        let mut families = Families::default();
        make(&mut families, None);
        match families.failed {
            Some(error) => Err(error),
            None => Ok(Self {
                descs: families.descs,
                make,
                read: Box::new(read),
            }),
        }
    }
}

impl<T> Collector for Scraped<T> {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = Families::default();
        (self.make)(&mut families, Some(&(self.read)()));
        families.families
    }
}
