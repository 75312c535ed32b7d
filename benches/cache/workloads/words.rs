//! Names, and how they are drawn.

use std::fmt::Write as _;

use crate::pods::draw;

pub(super) const WORDS: &[&str] = &[
    "ledger",
    "gateway",
    "invoice",
    "search",
    "catalog",
    "basket",
    "payment",
    "mailer",
    "relay",
    "billing",
    "profile",
    "session",
    "media",
    "thumbnail",
    "quota",
    "audit",
    "report",
    "export",
    "import",
    "pricing",
    "stock",
    "shipping",
    "returns",
    "fraud",
    "risk",
    "identity",
    "token",
    "webhook",
    "ingest",
    "stream",
    "batch",
    "cron",
    "cache",
    "proxy",
    "router",
    "metrics",
    "alert",
    "trace",
    "feature",
    "flag",
    "consent",
    "locale",
    "template",
    "render",
    "crawler",
    "index",
    "ranking",
    "review",
    "rating",
    "loyalty",
    "coupon",
    "partner",
    "vendor",
    "tax",
    "currency",
    "geo",
    "map",
    "notify",
    "push",
    "chat",
    "voice",
    "video",
    "upload",
    "archive",
];
pub(super) const TEAMS: &[&str] = &[
    "checkout",
    "platform",
    "growth",
    "data",
    "security",
    "mobile",
    "search-and-discovery",
    "fulfilment",
    "finance",
    "internal-tools",
    "observability",
    "ml-serving",
    "content",
    "identity-and-access",
    "partners",
    "edge",
];
pub(super) const REGISTRIES: &[&str] = &[
    "registry.example.com",
    "europe-docker.pkg.example.dev/prod-images",
    "123456789012.dkr.ecr.eu-central-1.example.com",
    "ghcr.example.io/acme",
];
pub(super) const SETTINGS: &[&str] = &[
    "LOG_LEVEL",
    "LOG_FORMAT",
    "DATABASE_URL",
    "DATABASE_POOL_SIZE",
    "REDIS_ADDRESS",
    "KAFKA_BROKERS",
    "KAFKA_GROUP_ID",
    "HTTP_PORT",
    "GRPC_PORT",
    "METRICS_PORT",
    "REQUEST_TIMEOUT_MS",
    "RETRY_LIMIT",
    "FEATURE_FLAGS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",
    "SENTRY_DSN",
    "S3_BUCKET",
    "AWS_REGION",
    "JAVA_TOOL_OPTIONS",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "NODE_OPTIONS",
    "CACHE_TTL_SECONDS",
    "ALLOWED_ORIGINS",
    "SMTP_HOST",
    "OAUTH_ISSUER",
    "OAUTH_AUDIENCE",
    "RATE_LIMIT_PER_MINUTE",
    "WORKER_CONCURRENCY",
    "SHARD_COUNT",
    "TZ",
];

/// Draws what a workload is made of.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (draw(&mut self.0) % bound as u64) as usize
    }

    pub(super) fn one_of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn hex(&mut self, digits: usize) -> String {
        let mut text = String::new();
        while text.len() < digits {
            let _ = write!(text, "{:016x}", draw(&mut self.0));
        }
        text.truncate(digits);
        text
    }
}
