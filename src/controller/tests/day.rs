//! A simulated day of many CronJobs.
