-- Pseudo-random values of a row: the same for a key and a column however the load is divided.
CREATE FUNCTION tprocc_number(key bigint, col int, low int, high int) RETURNS int
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN low + ((hashint8extended(key, col) & 9223372036854775807) % (high - low + 1))::int;

-- Hex digits, up to 64 of them: nothing that a compressor could shorten much.
CREATE FUNCTION tprocc_text(key bigint, col int, low int, high int) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN left(
        md5((key * 64 + col)::text)
            || CASE WHEN high > 32 THEN md5((key * 64 + col)::text || '+') ELSE '' END,
        tprocc_number(key, col, low, high));

-- c_data: 16 times 32 digits, cut.
CREATE FUNCTION tprocc_data(key bigint, col int) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN left(
        md5(key || 'a') || md5(key || 'b') || md5(key || 'c') || md5(key || 'd')
            || md5(key || 'e') || md5(key || 'f') || md5(key || 'g') || md5(key || 'h')
            || md5(key || 'i') || md5(key || 'j') || md5(key || 'k') || md5(key || 'l')
            || md5(key || 'm') || md5(key || 'n') || md5(key || 'o') || md5(key || 'p'),
        tprocc_number(key, col, 300, 500));

-- Clause 4.3.2.3: a last name out of three syllables, one for each decimal digit.
CREATE FUNCTION tprocc_last_name(number int) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])
            [1 + number / 100]
        || (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])
            [1 + number / 10 % 10]
        || (ARRAY['BAR', 'OUGHT', 'ABLE', 'PRI', 'PRES', 'ESE', 'ANTI', 'CALLY', 'ATION', 'EING'])
            [1 + number % 10];

-- Clause 2.1.6, NURand, out of two hashes of a key.
CREATE FUNCTION tprocc_nurand(key bigint, col int, a int, c int, low int, high int) RETURNS int
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((tprocc_number(key, col, 0, a) | tprocc_number(key, col + 1, low, high)) + c)
        % (high - low + 1) + low;

-- One row in ten carries the word "ORIGINAL" somewhere in its data (clause 4.3.3.1).
CREATE FUNCTION tprocc_item_data(key bigint, col int) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE
        WHEN tprocc_number(key, col + 1, 1, 10) = 1
        THEN overlay(tprocc_text(key, col, 26, 50) PLACING 'ORIGINAL'
            FROM tprocc_number(key, col + 2, 1, 18))
        ELSE tprocc_text(key, col, 26, 50) END;
