-- The five transactions (TPC-C clause 2), one call each. Rows are locked in one order everywhere
-- (warehouse, district, orders, customers by district, stock by key), so that none can deadlock.

-- Clause 2.4. The last item of one order in a hundred does not exist: all is rolled back. Taxes and
-- the discount are read, as for the total, but no transaction here returns what a terminal shows.
CREATE PROCEDURE tprocc_new_order(
    in_w int, in_d int, in_c int, in_count int, in_items int[], in_supply int[], in_quantity int[])
    LANGUAGE plpgsql AS $$
DECLARE
    order_id int;
    rates numeric;
    rate numeric;
    line record;
    invalid bool := false;
    info text;
    numbers int[] := '{}';
    items int[] := '{}';
    supplies int[] := '{}';
    quantities int[] := '{}';
    amounts numeric[] := '{}';
    infos text[] := '{}';
BEGIN
    SELECT w_tax INTO STRICT rates FROM warehouse WHERE w_id = in_w;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = in_w AND d_id = in_d
        RETURNING d_next_o_id - 1, d_tax INTO STRICT order_id, rate;
    rates := 1 + rates + rate;
    SELECT 1 - c_discount INTO STRICT rate FROM customer
        WHERE c_w_id = in_w AND c_d_id = in_d AND c_id = in_c;
    INSERT INTO orders VALUES (order_id, in_d, in_w, in_c, now(), NULL, in_count,
        (in_w = ALL (in_supply[1:in_count]))::int);
    INSERT INTO new_order VALUES (order_id, in_d, in_w);
    FOR line IN
        SELECT l.n, l.item, l.supply, l.quantity, i_price AS price
        FROM unnest(in_items, in_supply, in_quantity) WITH ORDINALITY
            AS l (item, supply, quantity, n)
        LEFT JOIN item ON i_id = l.item
        WHERE l.n <= in_count ORDER BY i_price IS NULL, l.supply, l.item, l.n
    LOOP
        -- The item that does not exist comes last: the valid ones have been worked on by then.
        IF line.price IS NULL THEN
            invalid := true;
            EXIT;
        END IF;
        UPDATE stock SET
            s_quantity = CASE WHEN s_quantity >= line.quantity + 10
                THEN s_quantity - line.quantity ELSE s_quantity - line.quantity + 91 END,
            s_ytd = s_ytd + line.quantity,
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (line.supply <> in_w)::int
        WHERE s_w_id = line.supply AND s_i_id = line.item
        RETURNING CASE in_d
            WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
            WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
            WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
            ELSE s_dist_10 END INTO STRICT info;
        numbers := numbers || line.n::int;
        items := items || line.item;
        supplies := supplies || line.supply;
        quantities := quantities || line.quantity;
        amounts := amounts || line.quantity * line.price;
        infos := infos || info;
    END LOOP;
    INSERT INTO order_line
        SELECT order_id, in_d, in_w, l.n, l.item, l.supply, NULL, l.quantity, l.amount, l.info
        FROM unnest(numbers, items, supplies, quantities, amounts, infos)
            AS l (n, item, supply, quantity, amount, info)
        ORDER BY l.n;
    IF invalid THEN
        ROLLBACK;
    END IF;
END $$;

-- Clause 2.5. The customer by number, or, where that is 0, the middle one of a last name.
CREATE PROCEDURE tprocc_payment(
    in_w int, in_d int, in_customer_w int, in_customer_d int, in_c int, in_last int,
    in_amount numeric)
    LANGUAGE plpgsql AS $$
DECLARE
    found_c int := in_c;
    names text;
    name text;
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + in_amount WHERE w_id = in_w
        RETURNING w_name INTO STRICT names;
    UPDATE district SET d_ytd = d_ytd + in_amount WHERE d_w_id = in_w AND d_id = in_d
        RETURNING d_name INTO STRICT name;
    IF in_c = 0 THEN
        found_c := tprocc_customer(in_customer_w, in_customer_d, in_last);
    END IF;
    UPDATE customer SET
        c_balance = c_balance - in_amount,
        c_ytd_payment = c_ytd_payment + in_amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE WHEN c_credit = 'BC'
            THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, in_d, in_w, in_amount, c_data), 500)
            ELSE c_data END
        WHERE c_w_id = in_customer_w AND c_d_id = in_customer_d AND c_id = found_c;
    INSERT INTO history VALUES (found_c, in_customer_d, in_customer_w, in_d, in_w, now(),
        in_amount, left(names || '    ' || name, 24));
END $$;

-- Clause 2.5.2.2: of the customers of a last name in order of first names, the middle one.
CREATE FUNCTION tprocc_customer(in_w int, in_d int, in_last int) RETURNS int
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    found int[];
BEGIN
    SELECT array_agg(c_id ORDER BY c_first) INTO found FROM customer
        WHERE c_w_id = in_w AND c_d_id = in_d AND c_last = tprocc_last_name(in_last);
    RETURN found[(cardinality(found) + 1) / 2];
END $$;

-- Clause 2.6: the last order of a customer and its lines.
CREATE FUNCTION tprocc_order_status(in_w int, in_d int, in_c int, in_last int) RETURNS bigint
    LANGUAGE plpgsql AS $$
DECLARE
    found_c int := in_c;
    latest record;
    balance numeric;
    line record;
    lines bigint := 0;
BEGIN
    IF in_c = 0 THEN
        found_c := tprocc_customer(in_w, in_d, in_last);
    END IF;
    SELECT c_balance INTO STRICT balance FROM customer
        WHERE c_w_id = in_w AND c_d_id = in_d AND c_id = found_c;
    SELECT o_id, o_entry_d, o_carrier_id INTO latest FROM orders
        WHERE o_w_id = in_w AND o_d_id = in_d AND o_c_id = found_c ORDER BY o_id DESC LIMIT 1;
    FOR line IN
        SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
            WHERE ol_w_id = in_w AND ol_d_id = in_d AND ol_o_id = latest.o_id
    LOOP
        lines := lines + 1;
    END LOOP;
    RETURN lines;
END $$;

-- Clause 2.7: the oldest new order of each district that no other delivery has in hand.
CREATE PROCEDURE tprocc_delivery(in_w int, in_carrier int)
    LANGUAGE plpgsql AS $$
DECLARE
    order_id int;
    customer_id int;
    total numeric;
BEGIN
    FOR district_id IN 1..10 LOOP
        SELECT no_o_id INTO order_id FROM new_order
            WHERE no_w_id = in_w AND no_d_id = district_id ORDER BY no_o_id LIMIT 1
            FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        DELETE FROM new_order
            WHERE no_w_id = in_w AND no_d_id = district_id AND no_o_id = order_id;
        UPDATE orders SET o_carrier_id = in_carrier
            WHERE o_w_id = in_w AND o_d_id = district_id AND o_id = order_id
            RETURNING o_c_id INTO STRICT customer_id;
        WITH delivered AS (
            UPDATE order_line SET ol_delivery_d = now()
                WHERE ol_w_id = in_w AND ol_d_id = district_id AND ol_o_id = order_id
                RETURNING ol_amount)
        SELECT sum(ol_amount) INTO STRICT total FROM delivered;
        UPDATE customer SET c_balance = c_balance + total, c_delivery_cnt = c_delivery_cnt + 1
            WHERE c_w_id = in_w AND c_d_id = district_id AND c_id = customer_id;
    END LOOP;
END $$;

-- Clause 2.8: items of the last 20 orders of a district whose stock is low.
CREATE FUNCTION tprocc_stock_level(in_w int, in_d int, in_threshold int) RETURNS bigint
    LANGUAGE plpgsql AS $$
DECLARE
    next_id int;
    low bigint;
BEGIN
    SELECT d_next_o_id INTO STRICT next_id FROM district WHERE d_w_id = in_w AND d_id = in_d;
    SELECT count(DISTINCT s_i_id) INTO low FROM order_line
        JOIN stock ON s_w_id = in_w AND s_i_id = ol_i_id
        WHERE ol_w_id = in_w AND ol_d_id = in_d
            AND ol_o_id >= next_id - 20 AND ol_o_id < next_id AND s_quantity < in_threshold;
    RETURN low;
END $$;
