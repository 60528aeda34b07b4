'use strict';
// rhea as programs write it.

const rhea = require('rhea');
const WebSocket = require('ws');
const { thing, options, report, body, Received, certificates, fail } = require('./common');

// As a page of another site does it; Azure's SDKs offer this subprotocol and path.
function overWeb(container, end) {
    const open = container.websocket_connect(WebSocket);
    const how = { ca: certificates(), origin: 'https://app.example.com' };
    return { connection_details: open(`wss://${end.host}:${end.port}/$servicebus/websocket`, ['AMQPWSB10'], how) };
}

function connect(end, more) {
    const container = rhea.create_container();
    const tls = end.web ? overWeb(container, end) : end.tls ? { transport: 'tls', ca: certificates() } : {};
    for (const error of ['connection_error', 'session_error', 'sender_error', 'receiver_error']) {
        container.on(error, (context) => {
            const source = context.receiver || context.sender || context.session || context.connection;
            fail(source.error);
        });
    }
    return container.connect({ host: end.host, port: end.port, username: 'anonymous', reconnect: false, ...tls, ...more });
}

function sendAll(connection, count, accepted) {
    const sender = connection.open_sender(options.address);
    let sent = 0;
    let outcomes = 0;
    sender.on('sendable', () => {
        while (sent < count && sender.sendable()) sender.send({ body: body(sent++) });
    });
    sender.on('accepted', () => {
        outcomes += 1;
        if (outcomes === count) accepted(sender);
    });
    for (const other of ['rejected', 'released', 'modified']) sender.on(other, () => fail('the outcome is ' + other));
}

function exchange() {
    const to = connect(options.to);
    const received = new Received();
    let accepted = 0;
    const receiver = to.open_receiver({ source: options.address, credit_window: options.credit });
    let from;
    let over = false;
    function check() {
        if (over || received.count < options.count || !accepted) return;
        over = true;
        report('done', { ...received.details, accepted });
        from.close();
        to.close();
    }
    receiver.on('message', (context) => {
        received.add(context.message.body);
        setImmediate(check);
    });
    receiver.once('receiver_open', () => {
        from = connect(options.from);
        sendAll(from, options.count, () => {
            accepted = options.count;
            check();
        });
    });
}

function request() {
    const to = connect(options.to);
    const from = connect(options.from);
    const replies = to.open_sender({ target: {} });
    to.open_receiver(options.address).on('message', (context) => {
        const { reply_to, correlation_id, body: asked } = context.message;
        replies.send({ to: reply_to, correlation_id, body: asked.toUpperCase() });
    });
    const receiver = from.open_receiver({ source: { dynamic: true } });
    let sender;
    let answered = 0;
    function ask() {
        sender.send({ reply_to: receiver.source.address, correlation_id: answered, body: 'ping ' + answered });
    }
    receiver.once('receiver_open', () => {
        sender = from.open_sender(options.address);
        sender.once('sendable', ask);
    });
    receiver.on('message', (context) => {
        if (context.message.correlation_id !== answered || context.message.body !== 'PING ' + answered) fail('another reply');
        answered += 1;
        if (answered < options.count) {
            ask();
            return;
        }
        report('done', { answered });
        from.close();
        to.close();
    });
}

function receiveAll(connection, source, then) {
    const received = new Received();
    const receiver = connection.open_receiver({ source });
    receiver.on('message', (context) => {
        received.add(context.message.body);
        if (received.count === options.count) then(received, receiver);
    });
}

function browse() {
    const connection = connect(options.from);
    sendAll(connection, options.count, (sender) => {
        sender.close();
        receiveAll(connection, { address: options.address, distribution_mode: 'copy' }, (browsed, browser) => {
            browser.close();
            receiveAll(connection, { address: options.address }, (received, receiver) => {
                report('done', { browsed: browsed.details, ...received.details });
                setImmediate(() => {
                    receiver.close();
                    connection.close();
                });
            });
        });
    });
}

// Everything that leaves goes in one write.
function unsubscribe() {
    const connection = connect(options.from);
    const source = { address: options.address, durable: 2, expiry_policy: 'never', capabilities: ['topic'] };
    const receiver = connection.open_receiver({ name: options.address, source });
    receiver.on('receiver_open', () => {
        report('done');
        receiver.close();
        connection.close();
    });
}

function hold() {
    const connection = connect(options.from);
    sendAll(connection, options.count, () => {
        let held = 0;
        connection.open_receiver({ source: options.address, autoaccept: false }).on('message', () => {
            held += 1;
            if (held === options.count) report('held');
        });
    });
}

function receive() {
    const connection = connect(options.from);
    receiveAll(connection, { address: options.address }, (received) => {
        report('done', received.details);
        setImmediate(() => connection.close());
    });
}

// Sends to itself before and after its router was killed.
function reconnect() {
    const connection = connect(options.from, { reconnect: true });
    const sender = connection.open_sender(options.address);
    let lost = false;
    let waits = false;
    connection.on('disconnected', () => { lost = true; waits = false; });
    function send() {
        if (waits || !sender.sendable()) return;
        waits = true;
        sender.send({ body: lost ? 'after' : 'before' });
    }
    sender.on('sendable', send);
    connection.open_receiver(options.address).on('message', (context) => {
        if (context.message.body === 'before' && !lost) report('ready');
        if (context.message.body !== 'after') return;
        report('done');
        setImmediate(() => connection.close());
    });
}

({ exchange, request, browse, unsubscribe, hold, receive, reconnect })[thing]();
