-- How the server writes its log. Anyone; log_filename is for pg_read_all_settings.
SELECT current_setting('log_line_prefix') AS line_prefix, current_setting('log_timezone') AS zone,
       extract(epoch FROM (now() AT TIME ZONE current_setting('log_timezone'))
                          - (now() AT TIME ZONE 'UTC'))::int8 AS zone_offset_s,
       current_setting('server_encoding') AS encoding, current_setting('lc_messages') AS messages,
       current_setting('log_statement') AS statements,
       current_setting('log_min_duration_statement') AS min_duration,
       current_setting('log_min_duration_sample') AS min_duration_sample,
       current_setting('log_transaction_sample_rate')::float8 AS transaction_sample_rate,
       (SELECT setting FROM pg_settings WHERE name = 'log_filename') AS file_name
