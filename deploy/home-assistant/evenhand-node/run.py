#!/usr/bin/env python3
"""Turns the app's options into node.toml and starts the node in its place.

Options come from /data/options.json; the credentials of Home Assistant's broker from its Supervisor. `run.py --print OPTIONS`
prints the configuration instead.
"""

import json
import os
import sys
import urllib.request

CONFIG = "/data/node.toml"
PASSWORD = "/data/broker.password"
OWNER_PASSWORD = "/data/owner.password"


def quoted(text):
    """A TOML string: JSON's escapes are TOML's."""
    return json.dumps(text, ensure_ascii=False)


def configuration(options, mqtt):
    """node.toml as text; `mqtt` is the Supervisor's answer about its broker, or None."""
    lines = [
        "[node]", f"id = {quoted(options['node'])}", f"federation = {quoted(options['federation'])}", 'state_folder = "/data/state"', "",
        "[broker]", f"url = {quoted(options['broker'])}",
    ]
    if options.get("password"):
        lines.append(f"password_file = {quoted(PASSWORD)}")
    lines += ["", "[window]", f"time_zone = {quoted(options['time_zone'])}", "", "[source]", options["source"].strip(), ""]
    if options.get("more"):
        lines += [options["more"].strip(), ""]
    # Home Assistant's proxy has checked who asks, and asks under names of its own.
    lines += ["[page]", 'listen = "0.0.0.0:9465"', 'hosts = ["*"]', f"unit = {quoted(options['unit'])}", ""]
    if mqtt:
        scheme = "mqtts" if mqtt.get("ssl") else "mqtt"
        lines += ["[owner]", f"unit = {quoted(options['unit'])}", "[owner.broker]", f"url = {quoted(scheme + '://' + mqtt['host'] + ':' + str(mqtt['port']))}"]
        if mqtt.get("username"):
            lines += [f"username = {quoted(mqtt['username'])}", f"password_file = {quoted(OWNER_PASSWORD)}"]
    return "\n".join(lines) + "\n"


def broker_of_home_assistant():
    """The Supervisor's answer about its MQTT service; None if there is none."""
    token = os.environ.get("SUPERVISOR_TOKEN")
    if not token:
        return None
    request = urllib.request.Request("http://supervisor/services/mqtt", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)["data"]
    except (OSError, KeyError, ValueError):
        return None


def write(path, text):
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)


def main():
    if sys.argv[1:2] == ["--print"]:
        with open(sys.argv[2]) as file:
            print(configuration(json.load(file), json.loads(os.environ.get("MQTT", "null"))), end="")
        return
    with open("/data/options.json") as file:
        options = json.load(file)
    mqtt = broker_of_home_assistant()
    if options.get("password"):
        write(PASSWORD, options["password"] + "\n")
    if mqtt and mqtt.get("password"):
        write(OWNER_PASSWORD, mqtt["password"] + "\n")
    write(CONFIG, configuration(options, mqtt))
    os.execv("/usr/bin/evenhand-node", ["evenhand-node", "run", "--config", CONFIG])


if __name__ == "__main__":
    main()
