"""Bad input and bad luck: each ends with a message that names the thing and the command to look further, and changes nothing."""


def run(world):
    world.up()
    raise NotImplementedError("written once the messages are there")
