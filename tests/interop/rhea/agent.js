'use strict';
// One peer in an interoperability test: `node agent.js ROLE JSON`. ../agents.py describes the roles and their reports.

const crypto = require('crypto');
const fs = require('fs');
const rhea = require('rhea');

const [role, text] = process.argv.slice(2);
const options = JSON.parse(text);

function report(event, details) {
    process.stdout.write(JSON.stringify({ event, ...details }) + '\n');
}

// Blocks the whole process, as a busy client does.
function waitUntilTold() {
    fs.readSync(0, Buffer.alloc(1));
}

function body(number) {
    const octets = Buffer.alloc(options.size);
    for (let at = 0; at < octets.length; at++) octets[at] = at & 255;
    octets.writeUInt32BE(0, 0);
    octets.writeUInt32BE(number, 4);
    return octets;
}

function describe(octets, settled) {
    const digest = crypto.createHash('sha1').update(octets).digest('hex').slice(0, 12);
    return [octets.readUInt32BE(4), octets.length, digest, settled];
}

function answer(delivery, name) {
    if (name === 'accepted') delivery.accept();
    else if (name === 'rejected') delivery.reject({ condition: 'test:unwanted', description: 'not this one' });
    else if (name === 'released') delivery.release();
    else delivery.modified({ delivery_failed: true, undeliverable_here: true });
}

function outcome(delivery) {
    const state = delivery.remote_state;
    if (!state) return ['none', null, null];
    const name = state.constructor.composite_type;
    if (name === 'rejected' && state.error) return [name, state.error.condition, state.error.description];
    if (name === 'modified') return [name, Boolean(state.delivery_failed), Boolean(state.undeliverable_here)];
    return [name, null, null];
}

function finish(connection, details) {
    report('done', details);
    connection.close();
}

function send(connection) {
    const mode = { settled: 1, unsettled: 0, mixed: 2 }[options.settle];
    const sender = connection.open_sender({
        target: options.address, snd_settle_mode: mode, treat_modified_as_released: false,
    });
    const deliveries = [];
    const outcomes = [];
    let open = 0;

    function sent() {
        const outgoing = sender.session.outgoing;
        return outgoing.next_pending_delivery === outgoing.next_delivery_id;
    }
    function check() {
        if (deliveries.length < options.count || open > 0) return;
        if (sent()) finish(connection, { outcomes });
        else setImmediate(check);
    }
    connection.on('sender_open', () => report('ready'));
    connection.on('sendable', () => {
        while (sender.sendable() && deliveries.length < options.count) {
            const number = deliveries.length;
            const delivery = sender.send({ body: rhea.message.data_section(body(number)) });
            if (options.settle === 'mixed' && number % 2) delivery.settled = true;
            deliveries.push(delivery);
            outcomes.push(delivery.settled ? ['settled', null, null] : null);
            if (!delivery.settled) open += 1;
        }
        check();
    });
    function note(delivery) {
        outcomes[deliveries.indexOf(delivery)] = outcome(delivery);
        open -= 1;
        check();
    }
    connection.on('accepted', (context) => {
        if (context.delivery.remote_settled) return;
        context.delivery.update(true); // the receiver waits for us to settle first
        note(context.delivery);
    });
    connection.on('settled', (context) => note(context.delivery));
}

function receive(connection) {
    const receiver = connection.open_receiver({
        source: options.address, credit_window: 0, autoaccept: false,
        rcv_settle_mode: options.settle === 'second' ? 1 : 0, snd_settle_mode: options.settle === 'settled' ? 1 : 2,
    });
    const messages = [];
    let unsettled = 0;

    function check() {
        if (messages.length === options.count && unsettled === 0) finish(connection, { messages });
    }
    connection.on('receiver_open', () => {
        receiver.add_credit(options.credit);
        report('ready');
    });
    connection.on('settled', () => {
        unsettled -= 1;
        check();
    });
    connection.on('message', (context) => {
        const delivery = context.delivery;
        const number = messages.length;
        messages.push(describe(context.message.body.content, delivery.remote_settled));
        if (messages.length === options.hold) {
            report('held');
            waitUntilTold();
        }
        if (!delivery.remote_settled) {
            if (options.settle === 'second') unsettled += 1;
            answer(delivery, options.answers[number % options.answers.length]);
        }
        if (messages.length < options.count) receiver.add_credit(1);
        check();
    });
}

function drain(connection) {
    const receiver = connection.open_receiver({ source: options.address, credit_window: 0, autoaccept: true });
    let received = 0;
    connection.on('receiver_open', () => {
        report('ready');
        waitUntilTold();
        receiver.add_credit(options.credit);
        receiver.drain_credit();
    });
    connection.on('receiver_drained', () => {
        receiver.drain = false;
        report('drained', { received });
        waitUntilTold();
        receiver.add_credit(options.credit);
    });
    connection.on('message', () => {
        received += 1;
        if (received === options.count) finish(connection, { received });
    });
}

function request(connection) {
    const receiver = connection.open_receiver({ source: { dynamic: true } });
    const replies = [];
    let sender;
    connection.on('receiver_open', (context) => {
        if (context.receiver !== receiver) return;
        report('ready', { address: receiver.source.address });
        sender = connection.open_sender(options.address);
    });
    function next() {
        const id = 'id-' + replies.length;
        sender.send({ reply_to: receiver.source.address, correlation_id: id, body: 'ping ' + replies.length });
    }
    connection.once('sendable', next);
    connection.on('message', (context) => {
        replies.push([context.message.correlation_id, context.message.body]);
        if (replies.length === options.count) finish(connection, { replies });
        else next();
    });
}

function respond(connection) {
    connection.open_receiver(options.address);
    const sender = connection.open_sender({ target: {} });
    let answered = 0;
    connection.once('sendable', () => report('ready'));
    connection.on('message', (context) => {
        const message = context.message;
        sender.send({
            to: message.reply_to, correlation_id: message.correlation_id, body: message.body.toUpperCase(),
        });
    });
    connection.on('settled', (context) => {
        if (context.delivery.link !== sender) return;
        answered += 1;
        if (answered === options.count) finish(connection, { answered });
    });
}

// Tries an action that the router denies, and reports the error and its scope as rhea gives them.
function denied(connection) {
    function heard(scope, error) {
        finish(connection, { heard: [scope, error.condition, error.description] });
    }
    connection.on('sender_error', (context) => heard('sender', context.sender.error));
    connection.on('receiver_error', (context) => heard('receiver', context.receiver.error));
    connection.on('rejected', (context) => heard('message', context.delivery.remote_state.error));
    connection.once('sendable', (context) => {
        if (options.message) context.sender.send({ ...options.message, body: 'x' });
    });
    if (options.receives) connection.open_receiver({ source: options.terminus });
    else connection.open_sender({ target: options.terminus });
}

function leave(connection) {
    const receivers = [];
    connection.on('receiver_open', (context) => {
        receivers.push(context.receiver);
        if (receivers.length < options.count) return;
        for (const receiver of receivers) receiver.close();
        finish(connection, {});
    });
    for (let number = 0; number < options.count; number++) {
        const source = { address: options.address, durable: 2, expiry_policy: 'never' };
        connection.open_receiver({ name: `${options.name}-${number}`, source });
    }
}

// With a subprotocol it connects over a WebSocket (`node --experimental-websocket` where Node needs it).
function way() {
    if (!options.subprotocol) return { host: '127.0.0.1', port: options.port };
    const open = rhea.websocket_connect(WebSocket);
    return { connection_details: open(`ws://127.0.0.1:${options.port}`, [options.subprotocol]) };
}

// The login: anonymous, a user with a password, or the user of a certificate; the latter two within TLS.
function credentials() {
    if (!options.ca) return { username: 'anonymous' };
    const tls = { transport: 'tls', ca: fs.readFileSync(options.ca), servername: 'localhost' };
    if (!options.cert) return { ...tls, username: options.username, password: options.password };
    return { ...tls, cert: fs.readFileSync(options.cert), key: fs.readFileSync(options.key), enable_sasl_external: true };
}

const connection = rhea.create_container({ id: 'rhea' }).connect({
    ...way(), ...credentials(), reconnect: false,
});
connection.on('connection_error', (context) => {
    const { condition, description } = context.connection.error;
    report('failed', { condition, description });
    process.exitCode = 1;
});
({ send, receive, drain, request, respond, leave, denied })[role](connection);
