"""What experiments share: tables of ours, trials on pgbench's, arithmetic of WAL and pages."""
